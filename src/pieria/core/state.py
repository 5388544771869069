"""What the log means: nested by agent and turn, immutable, rebuilt by folding records in order."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from pieria.core.events.calls import ToolSpawned
from pieria.core.events.session import (
    AgentAdded,
    ProjectObserved,
    SessionClosed,
    SessionCreated,
    SettingsApplied,
)
from pieria.core.values import AgentId, Call, CallId, Examined, Message, OpId, Text, Todo, Value

SENT_BLOCK = 100

Phase = Literal["asked", "examined", "held", "denied", "running", "closed"]


class CallState(Value, frozen=True, gc=False):
    """One tool call on its way from asked to closed.

    `granted` is the action hash that an approval allows; a later examination must give the same one.
    """

    call: Call
    phase: Phase = "asked"
    examined: int = -1
    facts: Examined | None = None
    approval: OpId | None = None
    ruled_under: int = -1
    granted: str = ""
    comment: str = ""
    op: OpId | None = None
    spawned: ToolSpawned | None = None
    result: Text = ""


class Step(Value, frozen=True, gc=False):
    """The latest model call of a turn. `wait_s`: how long to wait before the next attempt; None means no other."""

    seq: int
    op: OpId
    attempt: int
    phase: Literal["open", "answered", "flawed", "lost", "failed"] = "open"
    reason: str = ""
    detail: str = ""
    wait_s: float | None = None
    partial: str = ""


class Turn(Value, frozen=True, gc=False):
    """A turn: what each step has sent, its latest step, and that step's calls in the order asked.

    `sent` holds the latest steps, `sent_before` the older ones in blocks of SENT_BLOCK, so that adding one costs the
    same in a long turn as in a short one.
    """

    seq: int
    sent_before: tuple[tuple[tuple[Message, ...], ...], ...] = ()
    sent: tuple[tuple[Message, ...], ...] = ()
    steps: int = 0
    step: Step | None = None
    calls: tuple[CallState, ...] = ()
    flaws: int = 0
    timer: OpId | None = None


class Input(Value, frozen=True, gc=False):
    """A prompt that no request carries yet."""

    seq: int
    text: Text


class Tokens(Value, frozen=True, gc=False):
    """Tokens of one agent so far; `unknown` counts calls whose usage the provider did not tell."""

    input: int = 0
    output: int = 0
    cached: int = 0
    unknown: int = 0


class StopRequest(Value, frozen=True, gc=False):
    """Everything open of an agent is to end. `reason`: interrupted or capped."""

    seq: int
    reason: str


class Agent(Value, frozen=True, gc=False):
    """One standing agent. The next request carries `pending`, then `notes`, then `unread`."""

    added: AgentAdded
    unread: tuple[Input, ...] = ()
    notes: tuple[Message, ...] = ()
    pending: tuple[Message, ...] = ()
    turn: Turn | None = None
    turns: tuple[Turn, ...] = ()
    last_request: int | None = None
    last_end: str = ""
    last_detail: str = ""
    last_text: Text = ""
    known: dict[str, str] = {}
    todo: tuple[Todo, ...] = ()
    tokens: Tokens = Tokens()
    stop: StopRequest | None = None


class Approval(Value, frozen=True, gc=False):
    """An open question to the person."""

    op: OpId
    agent: AgentId
    call: CallId
    action: str
    why: str
    seq: int


class Timer(Value, frozen=True, gc=False):
    """A wait that was recorded and has not ended."""

    op: OpId
    agent: AgentId
    purpose: str
    deadline: str


class State(Value, frozen=True, gc=False):
    """The whole session after its latest record."""

    seq: int = -1
    time: str = ""
    epoch: int = 0
    session: SessionCreated | None = None
    settings: SettingsApplied = SettingsApplied(mode="edits")
    settings_seq: int = -1
    project: ProjectObserved | None = None
    agents: dict[AgentId, Agent] = {}
    approvals: dict[OpId, Approval] = {}
    timers: dict[OpId, Timer] = {}
    closed: SessionClosed | None = None
    steps: int = 0
    tokens: int = 0
    steps_before: int = 0
    tokens_before: int = 0
    out_of_time: bool = False


def with_agent(state: State, id: AgentId, agent: Agent) -> State:
    """Return the state with one agent replaced."""
    return replace(state, agents={**state.agents, id: agent})


def call_of(state: State, agent: AgentId, call: CallId) -> CallState:
    """Return a call of an agent's current step; it must be there."""
    turn = state.agents[agent].turn
    assert turn is not None
    return next(entry for entry in turn.calls if entry.call.id == call)


def running_call(state: State, agent: AgentId, op: OpId) -> CallState | None:
    """Return the call that an operation runs, or None: it is a model call, a timer, or over."""
    found = state.agents.get(agent)
    calls = found.turn.calls if found and found.turn else ()
    return next((entry for entry in calls if entry.op == op and entry.phase == "running"), None)


def partial_text(state: State, agent: AgentId) -> str:
    """Return what is recorded of an answer that is still streaming."""
    turn = state.agents[agent].turn
    return turn.step.partial if turn and turn.step else ""
