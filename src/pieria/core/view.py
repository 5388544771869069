"""What a front end shows: plain values derived from the state."""

from __future__ import annotations

from pieria.core import timers
from pieria.core.decide import decide
from pieria.core.state import Approval, State
from pieria.core.values import AgentId, CallId, Examined, OpId, Text, Value


class Outcome(Value, frozen=True, gc=False):
    """How a run ended. `status`: finished, failed, unavailable, refused, capped, interrupted."""

    status: str
    exit_code: int
    reason: str = ""


class Question(Value, frozen=True, gc=False):
    """An open approval with what it is about."""

    id: str
    agent: AgentId
    tool: str
    call: CallId
    why: str
    facts: Examined


def outcome(state: State) -> Outcome:
    """The outcome if the run ended now: nothing is in flight. The first agent of the roster answers the person."""
    if state.approvals:
        count = len(state.approvals)
        return Outcome("refused", 3, f"{count} approval{'s' if count > 1 else ''} open")
    agent = next(iter(state.agents.values()), None)
    open_turns = [entry for entry in state.agents.values() if entry.turn is not None or entry.unread]
    if open_turns and timers.steps_left(state) == 0:
        return Outcome("capped", 4, cap_reason(state))
    if agent is None:
        return Outcome("failed", 1, "the session has no agent")
    code = {"done": 0, "failed": 1, "unavailable": 75, "interrupted": 130}.get(agent.last_end, 1)
    status = {"done": "finished"}.get(agent.last_end, agent.last_end or "failed")
    return Outcome(status, code, agent.last_detail)


def cap_reason(state: State) -> str:
    """Which cap of this run stops the agents."""
    settings = state.settings
    if state.out_of_time:
        return "the time limit was reached"
    if settings.max_tokens is not None and state.tokens - state.tokens_before >= settings.max_tokens:
        return f"the cap of {settings.max_tokens} tokens was reached"
    return f"the cap of {settings.max_steps} steps was reached"


def answer(state: State) -> Text:
    """The last words of the agent that answers the person."""
    agent = next(iter(state.agents.values()), None)
    return "" if agent is None else agent.last_text


def questions(state: State) -> tuple[Question, ...]:
    """Open approvals in the order asked."""
    found: list[Question] = []
    for asked in state.approvals.values():
        found += _question(state, asked)
    return tuple(found)


def _question(state: State, asked: Approval) -> list[Question]:
    turn = state.agents[asked.agent].turn
    return [
        Question(asked.op, asked.agent, entry.call.name, asked.call, asked.why, entry.facts)
        for entry in (turn.calls if turn else ())
        if entry.call.id == asked.call and entry.facts is not None
    ]


def idle_timers(state: State) -> set[OpId]:
    """Timers that keep nobody busy: a deadline's, and all once time or tokens are used up and no attempt may follow."""
    over = timers.is_over(state)
    return {timer.op for timer in state.timers.values() if over or timer.purpose == "deadline"}


def is_resting(state: State) -> bool:
    """Whether core has nothing to start and knows of nothing in flight that is waited for."""
    if len(idle_timers(state)) < len(state.timers):
        return False
    for agent in state.agents.values():
        turn = agent.turn
        if turn is None:
            continue
        if turn.step is not None and turn.step.phase == "open":
            return False
        if any(call.phase == "running" for call in turn.calls):
            return False
    return not decide(state)
