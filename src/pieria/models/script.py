"""A script: the answers of a model that is none, and how each looks on the wire. Pure but for `load_script`.

A file is JSON: a list of answers, or `{"scripts": [{"when": "…", "answers": […]}]}` where `when` is part of the system
or first user message (empty: any request). A request gets the answer numbered by the assistant messages it holds, so
that a retry or a resumed session gets the right one. The first requests for an answer get its `faults`, one each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from pieria.core.errors import UsageError

Json = Mapping[str, object]


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call. `arguments`: an object, or text as it is sent, broken or not. Ids are call_0 … again each turn."""

    name: str
    arguments: dict[str, object] | str = msgspec.field(default_factory=dict)
    id: str = ""


class ScriptedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer, whole or at fault.

    `stop_reason` "" is the fitting one, null is none. `usage` null sends none; absent, a count by length is sent.
    `whole`: one JSON document instead of a stream. `done` false leaves out [DONE]. `cut_after_bytes` closes the
    connection inside the body, `stall_after_bytes` falls silent there. `status`, `headers`, `body` (any JSON) and
    `raw_body` (text as it is) replace the answer by another response.
    """

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    stop_reason: str | None = ""
    usage: dict[str, object] | msgspec.UnsetType | None = msgspec.UNSET
    delay_ms: int = 0
    chunk_chars: int = 16
    whole: bool = False
    done: bool = True
    cut_after_bytes: int | None = None
    stall_after_bytes: int | None = None
    status: int = 200
    headers: dict[str, str] = {}
    body: object = None
    raw_body: str | None = None
    faults: tuple[ScriptedAnswer, ...] = ()


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answers for requests in which `when` stands."""

    answers: tuple[ScriptedAnswer, ...]
    when: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    scripts: tuple[Script, ...]


class Played(msgspec.Struct, frozen=True):
    """A response to be played: after `delay_ms` the header, then the chunks, then a proper end, a cut or silence."""

    status: int
    headers: dict[str, str]
    chunks: tuple[bytes, ...]
    delay_ms: int = 0
    cut: bool = False
    stall: bool = False


class Received(msgspec.Struct, frozen=True):
    """A request as it came: what a log's step.started has to match."""

    sha256: str
    len: int
    answer: int
    attempt: int


def parse_script(data: bytes) -> tuple[Script, ...]:
    """Parse a script file. Raises UsageError."""
    try:
        if data.lstrip()[:1] == b"[":
            return (Script(msgspec.json.decode(data, type=tuple[ScriptedAnswer, ...])),)
        return msgspec.json.decode(data, type=_File).scripts
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UsageError(
            f"the script can't be used: {problem}", "see `pieria.models.script` for the format"
        ) from problem


def load_script(path: str) -> tuple[Script, ...]:
    """Read and parse a script file. Raises UsageError."""
    from pathlib import Path

    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise UsageError(
            f"the script can't be read: {path}: {why}",
            "the model is to be scripted:PATH, PATH a JSON file of answers",
        ) from problem
    return parse_script(data)


class Player:
    """Chooses what each request gets. It only counts how often the same bytes came, for the faults."""

    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self._scripts = scripts
        self._attempts: dict[str, int] = {}
        self.received: list[Received] = []

    def play(self, body: bytes) -> Played:
        """Record a request and return the response to it."""
        digest = sha256(body).hexdigest()
        attempt = self._attempts[digest] = self._attempts.get(digest, 0) + 1
        try:
            request = msgspec.json.decode(body)
            messages = [message for message in request["messages"] if isinstance(message, dict)]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError) as problem:
            self.received.append(Received(digest, len(body), -1, attempt))
            return _error(400, f"the request is no JSON with messages: {problem}")
        number = sum(message.get("role") == "assistant" for message in messages)
        self.received.append(Received(digest, len(body), number, attempt))
        script = next((script for script in self._scripts if script.when in _opening(messages)), None)
        if script is None:
            return _error(400, "no script fits this request")
        if number >= len(script.answers):
            return _error(400, f"the script has no answer {number}")
        answer = script.answers[number]
        if attempt <= len(answer.faults):
            answer = answer.faults[attempt - 1]
        return rendered(answer, number=number, model=str(request.get("model", "")), request_bytes=len(body))


def rendered(answer: ScriptedAnswer, *, number: int, model: str, request_bytes: int) -> Played:
    """Return the exact response that an answer stands for."""
    headers = {"content-type": "application/json"}
    if answer.raw_body is not None:
        headers = {"content-type": "text/html" if answer.raw_body[:1] == "<" else "text/event-stream"}
        chunks = [answer.raw_body.encode("utf-8", "surrogatepass")]
    elif answer.body is not None:
        chunks = [msgspec.json.encode(answer.body)]
    elif answer.status >= 300:
        chunks = [msgspec.json.encode({"error": {"message": f"scripted status {answer.status}"}})]
    elif answer.whole:
        chunks = [msgspec.json.encode(_whole(answer, number=number, model=model, request_bytes=request_bytes))]
    else:
        headers = {"content-type": "text/event-stream"}
        chunks = _stream(answer, number=number, model=model, request_bytes=request_bytes)
    headers |= {name.lower(): value for name, value in answer.headers.items()}
    stop = answer.cut_after_bytes if answer.cut_after_bytes is not None else answer.stall_after_bytes
    return Played(
        answer.status,
        headers,
        tuple(chunks if stop is None else _first(chunks, stop)),
        delay_ms=answer.delay_ms,
        cut=answer.cut_after_bytes is not None,
        stall=answer.cut_after_bytes is None and answer.stall_after_bytes is not None,
    )


def _stream(answer: ScriptedAnswer, *, number: int, model: str, request_bytes: int) -> list[bytes]:
    frame = {"id": f"scripted-{number}", "object": "chat.completion.chunk", "model": model}

    def event(delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event({**frame, "choices": [choice]})

    size = max(1, answer.chunk_chars)
    events = [event({"role": "assistant", "content": ""})]
    events += [event({answer.reasoning_field: piece}) for piece in _pieces(answer.reasoning, size)]
    events += [event({"content": piece}) for piece in _pieces(answer.text, size)]
    for index, call in enumerate(answer.calls):
        events.append(event({"tool_calls": [{"index": index, **_call(call, index, "")}]}))
        for piece in _pieces(_arguments(call), size):
            events.append(event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    if (reason := _reason(answer)) is not None:
        events.append(event({}, reason))
    if (usage := _usage(answer, request_bytes)) is not None:
        events.append(_event({**frame, "choices": [], "usage": usage}))
    if answer.done:
        events.append(b"data: [DONE]\n\n")
    return events


def _whole(answer: ScriptedAnswer, *, number: int, model: str, request_bytes: int) -> Json:
    message: dict[str, object] = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message[answer.reasoning_field] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_call(call, index, _arguments(call)) for index, call in enumerate(answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    found: dict[str, object] = {"id": f"scripted-{number}", "object": "chat.completion", "model": model}
    found["choices"] = [choice]
    if (usage := _usage(answer, request_bytes)) is not None:
        found["usage"] = usage
    return found


def _call(call: ScriptedCall, index: int, arguments: str) -> Json:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id or f"call_{index}", "type": "function", "function": function}


def _arguments(call: ScriptedCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def _reason(answer: ScriptedAnswer) -> str | None:
    return ("tool_calls" if answer.calls else "stop") if answer.stop_reason == "" else answer.stop_reason


def _usage(answer: ScriptedAnswer, request_bytes: int) -> dict[str, object] | None:
    if not isinstance(answer.usage, msgspec.UnsetType):
        return answer.usage
    said = len(answer.text) + len(answer.reasoning) + sum(len(_arguments(call)) for call in answer.calls)
    sent, written = request_bytes // 4, said // 4 + 1
    return {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}


def _opening(messages: Sequence[Json]) -> str:
    """Return what `when` is looked for in: the system message and the first of the user."""
    system = next((message for message in messages if message.get("role") == "system"), {})
    user = next((message for message in messages if message.get("role") == "user"), {})
    return f"{system.get('content', '')}\n{user.get('content', '')}"


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _event(value: Json) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _first(chunks: list[bytes], length: int) -> list[bytes]:
    found = []
    for chunk in chunks:
        if length <= 0:
            break
        found.append(chunk[:length])
        length -= len(chunk)
    return found


def _error(status: int, message: str) -> Played:
    body = msgspec.json.encode({"error": {"message": message, "type": "scripted"}})
    return Played(status, {"content-type": "application/json"}, (body,))
