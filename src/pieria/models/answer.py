"""Puts the pieces of one Chat Completions answer together. Pure; one Assembly for one attempt, never used again.

Servers differ in every detail that the protocol leaves open, and in some that it doesn't: what is read here is what
they send, and nothing is decided on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import msgspec

from pieria.core.ports import Answer, AnswerCall
from pieria.core.values import Usage
from pieria.models.text import without_surrogates

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")

Json = Mapping[str, object]


class Part:
    """One tool call while its pieces arrive."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self._chars = 0

    def add_name(self, name: str) -> None:
        """Take a name that is new, repeated, cumulative, or a further piece."""
        if name != self.name:
            self.name = name if name.startswith(self.name) else self.name + name

    def add_arguments(self, value: object) -> None:
        """Take a piece of text, or all of them as an object; a repetition of the whole text counts once."""
        if isinstance(value, (dict, list)):
            self.arguments = [as_json(value)]
        elif isinstance(value, str) and value:
            if len(value) == self._chars and value == "".join(self.arguments) and self.is_whole():
                return
            self.arguments.append(value)
            self._chars += len(value)

    def is_whole(self) -> bool:
        """Whether the arguments so far are a JSON object: nothing can follow it."""
        text = "".join(self.arguments) if self.arguments and self.arguments[-1].rstrip()[-1:] == "}" else ""
        if not text:
            return False
        try:
            return isinstance(msgspec.json.decode(text), dict)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return False


class Assembly:
    """One answer in the making. `done`: its end marker came. `began`: it holds something of an answer."""

    def __init__(self) -> None:
        self.done = False
        self.began = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_field = ""
        self._parts: list[Part] = []
        self._high = ""
        self._saw_delta = False
        self._stop_reason = ""
        self._usage: Usage | None = None
        self._model = ""
        self._id = ""
        self._logprobs: list[float] | None = None
        self._token_ids: list[int] | None = None

    def add(self, chunk: Json) -> str:
        """Take one chunk (or a whole answer, which has the same shape); return its new text."""
        self._model = self._model or _string(chunk.get("model"))
        self._id = self._id or _string(chunk.get("id"))
        self._count(chunk.get("usage"))
        choices = chunk.get("choices")
        text = ""
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None, "0"):
                text += self._add_choice(choice)
        return text

    def end(self) -> None:
        """The server said that the stream is over."""
        self.done = True

    def answer(self) -> Answer:
        """Return the whole answer. Only when `done`."""
        assert self.done
        calls = tuple(
            AnswerCall(_clean(part.name), _clean("".join(part.arguments)), _clean(part.id))
            for part in sorted(self._parts, key=lambda part: part.index)
            if part.name or part.id or part.arguments
        )
        logprobs = self._logprobs
        return Answer(
            text=_clean("".join(self._text)),
            calls=calls,
            reasoning=_clean("".join(self._reasoning)),
            reasoning_field=self._reasoning_field,
            stop_reason=_clean(self._stop_reason),
            usage=self._usage,
            model=_clean(self._model),
            response_id=_clean(self._id),
            token_ids=None if self._token_ids is None else tuple(self._token_ids),
            logprobs=tuple(logprobs) if logprobs is not None and all(map(math.isfinite, logprobs)) else None,
        )

    def _add_choice(self, choice: Json) -> str:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._saw_delta = True
        else:
            delta = {} if self._saw_delta else choice.get("message")
        text, moved = self._add_delta(delta) if isinstance(delta, dict) else ("", False)
        if moved:  # an end marker before the end marks nothing
            self.began, self.done = True, False
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._stop_reason, self.began, self.done = reason, True, True
        self._count(choice.get("usage"))
        self._add_tokens(choice)
        return text

    def _add_delta(self, delta: Json) -> tuple[str, bool]:
        """Take a delta; return its new text, and whether it brought anything."""
        text = "".join(_texts(delta.get("content"))) + _string(delta.get("refusal"))
        self._text.append(text)
        reasoning = self._add_reasoning(delta)
        calls = delta.get("tool_calls")
        calls = [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else []
        pieces = [call for call in calls if isinstance(call, dict)]
        for place, piece in enumerate(pieces):
            self._add_call(piece, place if len(pieces) > 1 else None)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict) and not pieces:
            self._add_call({"index": 0, "function": legacy}, None)
            pieces.append(legacy)
        return self._shown(text), bool(text or reasoning or pieces)

    def _add_reasoning(self, delta: Json) -> bool:
        """Keep to the first field that held anything: some servers send the same text under two names."""
        for name in (self._reasoning_field,) if self._reasoning_field else REASONING_FIELDS:
            if isinstance(value := delta.get(name), str) and value:
                self._reasoning_field = name
                self._reasoning.append(value)
                return True
        thoughts = [
            text
            for part in _dicts(delta.get("content"))
            if part.get("type") == "thinking"
            for text in _texts(part.get("thinking"))
        ]
        self._reasoning += thoughts
        return bool(thoughts)

    def _add_call(self, piece: Json, place: int | None) -> None:
        body = piece.get("function")
        body = body if isinstance(body, dict) else piece
        given, name = _string(piece.get("id")), _string(body.get("name"))
        index = piece.get("index")
        if isinstance(index, str) and index.isdecimal():
            index = int(index)
        part = self._part(index if isinstance(index, int) else None, given, name, place)
        part.id = part.id or given
        part.add_name(name)
        part.add_arguments(body.get("arguments"))

    def _part(self, index: int | None, given: str, name: str, place: int | None) -> Part:
        """Find the call that a piece belongs to, or begin one.

        With an index: that one, unless another id and name show that the server numbers every call 0. Without: by
        id; then by a name, which begins a call where several come at once or the last one is whole; else the last.
        """
        last = self._parts[-1] if self._parts else None
        if index is not None:
            found = [part for part in self._parts if part.index == index]
            if found and not (given and name and found[-1].id and found[-1].id != given):
                return found[-1]
            return self._begin(index)
        if given:
            found = [part for part in self._parts if part.id == given]
            return found[-1] if found else self._begin(len(self._parts))
        if last is None or (name and (place is not None or last.is_whole())):
            return self._begin(len(self._parts))
        return last

    def _begin(self, index: int) -> Part:
        part = Part(index)
        self._parts.append(part)
        return part

    def _count(self, found: object) -> None:
        if isinstance(found, dict) and (usage := usage_of(found)) != Usage():
            self._usage = usage

    def _add_tokens(self, choice: Json) -> None:
        logprobs = choice.get("logprobs")
        for entry in _dicts(logprobs.get("content")) if isinstance(logprobs, dict) else ():
            value = entry.get("logprob")
            if isinstance(value, (int, float)):
                self._logprobs = self._logprobs or []
                self._logprobs.append(float(value))
        ids = choice.get("token_ids")
        if isinstance(ids, list) and all(type(number) is int for number in ids):
            self._token_ids = (self._token_ids or []) + ids

    def _shown(self, text: str) -> str:
        """Return text for the screen: half of a pair of surrogates waits for the other half."""
        text = self._high + text
        self._high = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return _clean(text[: len(text) - len(self._high)])


def as_json(value: object) -> str:
    """Return arguments that came as an object the way most servers write them: as text."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # lone surrogates: escaped they are text again, and still what the model said
        import json

        return json.dumps(value, separators=(",", ":"))


def usage_of(found: Json) -> Usage:
    """Read the counts, under the names that providers use. What is absent stays unknown."""
    cached = _count_in(found.get("prompt_tokens_details"), "cached_tokens")
    for name in ("prompt_cache_hit_tokens", "cached_tokens"):
        cached = cached if cached is not None else _count_in(found, name)
    return Usage(
        input=_count_in(found, "prompt_tokens"),
        output=_count_in(found, "completion_tokens"),
        cached=cached,
        reasoning=_count_in(found.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count_in(found: object, name: str) -> int | None:
    value = found.get(name) if isinstance(found, dict) else None
    return value if type(value) is int and value >= 0 else None


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in _dicts(content):
        if part.get("type", "text") == "text":
            yield _string(part.get("text"))


def _dicts(value: object) -> Iterator[Json]:
    for part in value if isinstance(value, list) else ():
        if isinstance(part, dict):
            yield part


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


_clean = without_surrogates
