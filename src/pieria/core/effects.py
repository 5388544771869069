"""What decide asks of the shell: facts to write, things to look at, and effects with an intent and an outcome."""

from __future__ import annotations

from pieria.core.events.calls import Ruling
from pieria.core.record import Draft
from pieria.core.values import AgentId, CallId, OpId, Value


class Write(Value, frozen=True, gc=False):
    """Core's own fact: recorded as it stands, with no outcome to wait for."""

    draft: Draft


class Examine(Value, frozen=True, gc=False):
    """Find out what a call would do. Changes nothing; repeatable; needs no intent."""

    agent: AgentId
    call: CallId


class CallModel(Value, frozen=True, gc=False):
    """Ask an agent's model. `attempt` above 1 sends the bytes of the agent's last request again."""

    agent: AgentId
    attempt: int
    purpose: str = "work"


class StartTool(Value, frozen=True, gc=False):
    """Run an examined call that may run."""

    agent: AgentId
    call: CallId
    ruling: Ruling


class SetTimer(Value, frozen=True, gc=False):
    """Wait until an absolute time."""

    agent: AgentId
    purpose: str
    deadline: str


class Stop(Value, frozen=True, gc=False):
    """End an operation that is in flight; its own outcome says how it ended. The intent is the record `cause`."""

    agent: AgentId
    op: OpId
    reason: str
    cause: int


Effect = Write | Examine | CallModel | StartTool | SetTimer | Stop
