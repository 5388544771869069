"""Events of tool calls: examined, ruled on, run, and closed exactly once."""

from __future__ import annotations

from pieria.core.events.row import Event, Row
from pieria.core.values import CallId, Details, Examined, Text, Value


class Ruling(Value, frozen=True, gc=False):
    """Why a call may run: `by` is mode, rule or approval, and `reason` names which."""

    by: str
    reason: str = ""


class CallExamined(Event, frozen=True, gc=False):
    """What a call would do, found out without doing anything."""

    call: CallId
    facts: Examined


class CallRefused(Event, frozen=True, gc=False):
    """The call will not run; `text` is the result that the model gets. `by`: mode, rule, person, error, stop."""

    call: CallId
    by: str
    text: Text


class ApprovalRequested(Event, frozen=True, gc=False):
    """A question to the person, bound to the exact action. Its id is this record's op."""

    call: CallId
    action: str
    why: str


class ApprovalAnswered(Event, frozen=True, gc=False):
    """The answer, before anything it allows begins. `by`: person, or policy when this run's rules decide it.

    `answer`: allow, deny, or void when the action is no longer the one that was asked about.
    """

    answer: str
    by: str
    comment: str = ""


class ToolStarted(Event, frozen=True, gc=False):
    """The call begins: nothing it does happens before this is durable. `examined` is the seq of its call.examined.

    `contained` is told for commands: whether the operating system holds them in.
    """

    call: CallId
    tool: str
    version: int
    examined: int
    ruling: Ruling
    contained: bool | None = None


class ToolSpawned(Event, frozen=True, gc=False):
    """The gated supervisor of a command exists and waits for the word to go. With tool.started in one barrier."""

    call: CallId
    pid: int
    start_time: int
    boot_id: str
    job: str


class ToolFinished(Event, frozen=True, gc=False):
    """The call's result: exactly the text that the model sees, and typed details."""

    call: CallId
    text: Text
    error: bool = False
    details: Details = Details()


class ToolInterrupted(Event, frozen=True, gc=False):
    """The call was cut off: what is known of it is in `text`. `reason`: unknown, stopped, capped."""

    call: CallId
    reason: str
    text: Text


TABLE = (
    Row("call.examined", CallExamined, ("perform",), "examined again if not yet ruled on", barrier="relaxed"),
    Row("call.refused", CallRefused, ("decide",), "nothing to do"),
    Row(
        "approval.requested",
        ApprovalRequested,
        ("decide",),
        "ruled again under this run's rules, else the same question under the same id",
        opens=True,
    ),
    Row(
        "approval.answered",
        ApprovalAnswered,
        ("accept", "decide"),
        "runs if the action's hash still matches, else asked again",
        closes=("approval.requested",),
    ),
    Row(
        "tool.started",
        ToolStarted,
        ("decide",),
        "read: run again; edit: forward or back by hashes; command: collect, re-attach, or unknown",
        opens=True,
    ),
    Row("tool.spawned", ToolSpawned, ("perform",), "with tool.started"),
    Row("tool.finished", ToolFinished, ("perform", "recovery"), "nothing to do", closes=("tool.started",)),
    Row(
        "tool.interrupted",
        ToolInterrupted,
        ("perform", "recovery"),
        "the model decides",
        closes=("tool.started",),
    ),
)
