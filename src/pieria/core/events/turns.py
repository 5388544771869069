"""Events of input and turns: what the person said, when an agent began and ended acting on it."""

from __future__ import annotations

from pieria.core.events.row import Event, Row
from pieria.core.values import AgentId, Text


class PromptSubmitted(Event, frozen=True, gc=False):
    """The person's words to one agent, recorded before they are shown as accepted."""

    to: AgentId
    text: Text


class InterruptRequested(Event, frozen=True, gc=False):
    """Someone asked that an agent stop now; empty `to` means every agent."""

    to: str = ""
    reason: str = ""


class TurnStarted(Event, frozen=True, gc=False):
    """An agent took up its unread inputs, named by their sequence numbers; none: what its last turn left unfinished."""

    inputs: tuple[int, ...]


class TurnFinished(Event, frozen=True, gc=False):
    """An agent has nothing left to do. `reason`: done, failed, interrupted, capped."""

    reason: str
    detail: str = ""


class NudgeGiven(Event, frozen=True, gc=False):
    """The harness told the model something that the request must carry; `kind` says why."""

    kind: str
    text: Text


class TimerSet(Event, frozen=True, gc=False):
    """A wait that survives a restart: an absolute deadline and its purpose."""

    purpose: str
    deadline: str


class TimerFired(Event, frozen=True, gc=False):
    """A timer's deadline passed, or what it waited for no longer matters."""

    late: bool = False


TABLE = (
    Row("prompt.submitted", PromptSubmitted, ("accept",), "still unread: a turn opens"),
    Row("interrupt.requested", InterruptRequested, ("accept",), "what it stops is closed by its own row"),
    Row("turn.started", TurnStarted, ("decide", "accept"), "the turn goes on"),
    Row("turn.finished", TurnFinished, ("decide",), "nothing to do"),
    Row("nudge.given", NudgeGiven, ("decide",), "the next request carries it"),
    Row("timer.set", TimerSet, ("decide",), "overdue: fired now; else waited for", opens=True),
    Row("timer.fired", TimerFired, ("perform", "recovery"), "nothing to do", closes=("timer.set",)),
)
