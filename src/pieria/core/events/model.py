"""Events of model calls: the exact request, the committed answer, and attempts that did not count."""

from __future__ import annotations

from pieria.core.events.row import Event, Row
from pieria.core.values import Call, Sampling, Text, Usage, Value


class Request(Value, frozen=True, gc=False):
    """A request by reference. Body = head, all fragments up to and with `add` joined by commas, then tail.

    `after` is the seq of this agent's previous `step.started`, whose fragments and head come first; None starts anew,
    and then `head` and `tail` are given. `sha256` and `len` are of the whole body.
    """

    after: int | None
    add: tuple[Text, ...]
    recipe: int
    encoder: int
    sha256: str
    len: int
    head: Text | None = None
    tail: str | None = None


class StepStarted(Event, frozen=True, gc=False):
    """A model call begins: nothing is sent before this is durable. `spans` name what the call belongs to."""

    request: Request
    attempt: int
    purpose: str
    model: str
    sampling: Sampling = Sampling()
    spans: tuple[str, ...] = ()


class StepPartial(Event, frozen=True, gc=False):
    """New text of a streaming answer, for showing after a crash; never fed back to a model."""

    text: str


class StepFinished(Event, frozen=True, gc=False):
    """The whole answer, recorded before any of its calls runs. It may still be unusable: `core.turn` decides."""

    text: Text
    calls: tuple[Call, ...] = ()
    reasoning: Text = ""
    reasoning_field: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    model: str = ""
    response_id: str = ""
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    duration_ms: int = 0


class StepLost(Event, frozen=True, gc=False):
    """An attempt that never completed: the same bytes are sent again unless the person interrupted it.

    `reason`: crash, broken_stream, stalled, interrupted, capped.
    """

    reason: str
    detail: str = ""
    partial_bytes: int = 0
    estimated_output: int | None = None


class StepFailed(Event, frozen=True, gc=False):
    """The provider answered with an error. `kind` says what can be done about it."""

    kind: str
    status: int = 0
    message: str = ""
    retry_after_s: float | None = None


TABLE = (
    Row(
        "step.started",
        StepStarted,
        ("decide",),
        "step.lost, then the same bytes with attempt + 1",
        opens=True,
    ),
    Row("step.partial", StepPartial, ("perform",), "shown as seen before the crash", barrier="relaxed"),
    Row("step.finished", StepFinished, ("perform",), "its calls go on", closes=("step.started",)),
    Row("step.lost", StepLost, ("perform", "recovery"), "nothing to do", closes=("step.started",)),
    Row("step.failed", StepFailed, ("perform",), "retried or ended by decide", closes=("step.started",)),
)
