"""Print a session as it happens: JSON records after durability, or quiet lines for a person. Never asks anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

import msgspec

from pieria.core.events.calls import CallExamined, CallRefused, ToolFinished, ToolInterrupted
from pieria.core.events.model import StepFailed, StepFinished, StepLost
from pieria.core.events.session import SessionCreated
from pieria.core.events.turns import NudgeGiven, TurnFinished
from pieria.core.record import Record, UnknownData, type_name
from pieria.core.values import Call, CallId
from pieria.headless.words import one_line, shorten

_ENCODE = msgspec.json.Encoder().encode


def json_line(record: Record) -> bytes:
    """A record as `--json` prints it: the log's line without prev, hash and durable."""
    out: dict[str, object] = {
        "seq": record.seq, "epoch": record.epoch, "time": record.time, "agent": record.agent, "n": record.n,
        "type": type_name(record), "v": record.v,
    }  # fmt: skip
    cited = {"op": record.op, "cause": record.cause, "basis": record.basis}
    out |= {name: value for name, value in cited.items() if value is not None}
    out["data"] = record.data.raw if isinstance(record.data, UnknownData) else record.data
    return _ENCODE(out) + b"\n"


def progress_line(agent: str, text: str) -> bytes:
    """New text of a streaming answer: ignorable, never recorded."""
    return _ENCODE({"type": "x.progress", "agent": agent, "text": text}) + b"\n"


class JsonPrinter:
    """Prints records in order, none before it is durable."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._waiting: list[tuple[int, Record]] = []

    def record(self, record: Record) -> None:
        """Take a record that has been written; contents may come just after the record that cites them."""
        heappush(self._waiting, (record.seq, record))

    def durable(self, seq: int) -> None:
        """Print what is durable now."""
        while self._waiting and self._waiting[0][0] <= seq:
            self._write(json_line(heappop(self._waiting)[1]))


class LinePrinter:
    """One short line for what a person would want to know, to stderr."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._calls: dict[CallId, str] = {}

    def record(self, record: Record) -> None:
        """Say what happened, if it is worth a line."""
        line = self._line(record)
        if line:
            name = "" if record.agent in ("lead", "session", "person") else f"{record.agent}: "
            self._write(f"{name}{line}\n")

    def remember(self, calls: Iterable[Call]) -> None:
        """Calls that an earlier process had begun."""
        self._calls.update({call.id: call_line(call) for call in calls})

    def durable(self, seq: int) -> None:
        """Lines for a person do not wait: they promise nothing."""

    def _line(self, record: Record) -> str:
        match record.data:
            case SessionCreated(session=session):
                return f"session {session}"
            case StepFinished(calls=calls, text=text):
                self._calls.update({call.id: call_line(call) for call in calls})
                return one_line(text) if calls and isinstance(text, str) and text.strip() else ""
            case CallExamined(call=call, facts=facts) if facts.command:
                self._calls[call] = f"shell {shorten(facts.command)}"
                return ""
            case CallExamined(call=call, facts=facts) if facts.paths and " " not in self._calls.get(call, " "):
                self._calls[call] += f" {shorten(', '.join(path.given for path in facts.paths))}"
                return ""
            case ToolFinished(call=call, error=error, details=details):
                code = f" → exit {details.exit_code}" if details.exit_code is not None else ""
                return f"· {self._calls.pop(call, call)}{code or (' → error' if error else '')}"
            case ToolInterrupted(call=call, reason=reason):
                return f"· {self._calls.pop(call, call)} → interrupted ({reason})"
            case CallRefused(call=call, text=text):
                return f"· {self._calls.pop(call, call)} → not run: {shorten(text)}"
            case StepLost(reason=reason, detail=detail):
                return f"! the answer was lost ({reason}{': ' + shorten(detail, 300) if detail else ''})"
            case StepFailed(kind=kind, message=message, retry_after_s=wait):
                after = f"; asked to wait {wait:g} s" if wait else ""
                return f"! the model's server said no ({kind}): {shorten(message, 500)}{after}"
            case NudgeGiven(kind=kind):
                return f"! the answer could not stand as it was ({kind}); the model was told"
            case TurnFinished(reason=reason, detail=detail) if reason != "done":
                return f"! turn {reason}{': ' + shorten(detail, 500) if detail else ''}"
            case _:
                return ""


def call_line(call: Call) -> str:
    """A call as one line: the tool and what it is about, without JSON's clothes."""
    try:
        arguments = msgspec.json.decode(call.arguments) if isinstance(call.arguments, str) else {}
    except (msgspec.DecodeError, ValueError, RecursionError):
        arguments = {}
    values = arguments.values() if isinstance(arguments, dict) else ()
    plain = [str(value) for value in values if isinstance(value, str | int | float)]
    return f"{shorten(call.name, 40)} {shorten(' '.join(plain))}".rstrip()
