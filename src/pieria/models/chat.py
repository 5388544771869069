"""OpenAI Chat Completions: messages to exact bytes, and a streamed response to an answer.

The bytes of an encoder's version never change, since logs are replayed against them. A new spelling is a new version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec

from pieria.core.errors import UsageError
from pieria.core.ports import Answer, BrokenStream, Failure, HeadSpec
from pieria.core.values import (
    AssistantMessage,
    Call,
    CallId,
    Message,
    SystemMessage,
    Text,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from pieria.models.exchange import NoResponse, Timeouts
from pieria.models.http import HttpClient
from pieria.models.text import excerpt, without_surrogates
from pieria.models.url import parse_url, without_login

MAX_DEPTH = 100
"""Deepest nesting of arguments that is sent back: strict servers refuse more, and so may our own parser."""


class ChatEncoderV1:
    """Version 1: `messages` last in the body, so that a request only ever grows at its end."""

    version = 1
    tail = "]}"

    def head(self, spec: HeadSpec) -> str:
        """Return the body up to the first message."""
        sampling = spec.sampling
        parts = [f'{{"model":{_quoted(spec.model)},"stream":true,"stream_options":{{"include_usage":true}}']
        if sampling.temperature is not None:
            parts.append(f'"temperature":{_quoted(sampling.temperature)}')
        limit = sampling.max_tokens or spec.max_output
        if limit is not None:
            # Reasoning models, the ones with an effort, take the newer name alone; older servers know just the other.
            name = "max_tokens" if sampling.effort is None else "max_completion_tokens"
            parts.append(f'"{name}":{limit}')
        if sampling.effort is not None:
            parts.append(f'"reasoning_effort":{_quoted(sampling.effort)}')
        if spec.cache_key:
            parts.append(f'"prompt_cache_key":{_quoted(spec.cache_key)}')
        if spec.tools:
            parts.append(f'"tools":[{",".join(map(_tool, spec.tools))}]')
        parts.append('"messages":[')
        return ",".join(parts)

    def fragment(self, message: Message) -> str:
        """Return one message as JSON text."""
        match message:
            case SystemMessage(parts=parts):
                words = "\n\n".join(map(_resolved, parts))
                return f'{{"role":"system","content":{_quoted(words)}}}'
            case UserMessage(text=text, label=label):
                words = _note(_resolved(text), label) if label else _resolved(text)
                return f'{{"role":"user","content":{_quoted(words)}}}'
            case AssistantMessage():
                return _assistant(message)
            case ToolMessage(call=call, text=text):
                return f'{{"role":"tool","tool_call_id":"{wire_id(call)}","content":{_quoted(_resolved(text))}}}'
            case _:
                assert_never(message)


def wire_id(call: CallId) -> str:
    """Return the id of a call on the wire: `lead.41.0` is `call_41_0`. Ours, since servers repeat theirs each turn."""
    parts = call.rsplit(".", 2)
    if len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal():
        return f"call_{parts[1]}_{parts[2]}"
    return "call_" + "".join(char if char.isascii() and char.isalnum() else "_" for char in call)


def sendable_arguments(text: str) -> str:
    """Return arguments as they may be sent: the raw text if it is a JSON object, else {}.

    Depth is counted first, and on the text: what the parser itself can bear varies with the stack it runs on.
    """
    text = without_surrogates(text)
    try:
        fits = depth(text) <= MAX_DEPTH and isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, RecursionError):
        fits = False
    return text if fits else "{}"


def depth(text: str) -> int:
    """Return how deep a JSON text is nested; for any other text some number."""
    bare = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    if bare.count("[") + bare.count("{") <= MAX_DEPTH:
        return MAX_DEPTH
    deepest = level = 0
    for char in bare:
        if char in "[{":
            level += 1
            deepest = max(deepest, level)
        elif char in "]}":
            level -= 1
    return deepest


def _assistant(message: AssistantMessage) -> str:
    text = _resolved(message.text)
    parts = [f'{{"role":"assistant","content":{_quoted(text) if text or not message.calls else "null"}']
    if message.calls:
        if message.reasoning and message.reasoning_field:
            parts.append(f"{_quoted(message.reasoning_field)}:{_quoted(_resolved(message.reasoning))}")
        parts.append(f'"tool_calls":[{",".join(map(_call, message.calls))}]')
    return ",".join(parts) + "}"


def _call(call: Call) -> str:
    arguments = _quoted(sendable_arguments(_resolved(call.arguments)))
    return (
        f'{{"id":"{wire_id(call.id)}","type":"function",'
        f'"function":{{"name":{_quoted(call.name)},"arguments":{arguments}}}}}'
    )


def _tool(spec: ToolSpec) -> str:
    return (
        f'{{"type":"function","function":{{"name":{_quoted(spec.name)},'
        f'"description":{_quoted(_resolved(spec.description))},'
        f'"parameters":{without_surrogates(_resolved(spec.parameters))}}}}}'
    )


def _note(text: str, label: str) -> str:
    """Mark words of the harness as data that nobody typed; the text can't end its own note."""
    about = " ".join(label.replace("&", "&amp;").replace('"', "&quot;").split())
    inner = text.replace("</note", "<\\/note")
    return f'<note from="pieria" about="{about}">\n{inner}\n</note>'


def _quoted(value: str | float) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(without_surrogates(str(value))).decode()


def _resolved(text: Text) -> str:
    assert isinstance(text, str), "messages reach an encoder with their texts resolved"
    return text


class ChatModel:
    """One endpoint that speaks Chat Completions. Connections are kept from one request to the next."""

    def __init__(
        self,
        base_url: str,
        key: str = "",
        *,
        headers: Sequence[tuple[str, str]] = (),
        timeouts: Timeouts | None = None,
        user_agent: str = "pieria",
    ) -> None:
        place, mark, query = base_url.strip().partition("?")
        try:
            self._url = parse_url(f"{place.rstrip('/')}/chat/completions{mark}{query}")
        except ValueError as problem:
            raise UsageError(
                f"{excerpt(without_login(base_url))} can't be a base URL: {problem}",
                "such as https://HOST/v1; a key belongs in the variable PIERIA_API_KEY",
            ) from None  # what came before may hold a password
        self._key = key.strip()
        self._timeouts = timeouts or Timeouts()
        self._client = HttpClient(timeouts=self._timeouts, user_agent=user_agent)
        self._headers = [
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream, application/json"),
            ("Accept-Encoding", "identity"),
            *headers,
        ]
        if self._key:
            self._headers.append(("Authorization", f"Bearer {self._key}"))
        if not all(text.isascii() and text.isprintable() for header in self._headers for text in header):
            raise UsageError(
                "the key or a header holds characters that HTTP does not allow",
                "set the key again, as plain ASCII without line breaks inside",
            )

    def connect_early(self) -> None:
        """Begin to connect before there is anything to send. Needs the running event loop."""
        self._client.connect_early(self._url)

    async def stream(self, body: bytes, on_text: Callable[[str], None]) -> Answer | BrokenStream | Failure:
        """Send exactly `body`; see core.ports.Model."""
        try:
            reply = await self._client.post(self._url, body, headers=self._headers)
        except NoResponse as problem:
            return Failure("network", excerpt(str(problem), secret=self._key))
        from pieria.models.reading import Reading  # not before there is something to read

        reading = Reading(reply, on_text, timeouts=self._timeouts, secret=self._key)
        try:
            return await reading.outcome()
        finally:
            if reading.settled:
                reply.release()
            else:
                reply.discard()

    async def close(self) -> None:
        """Drop connections."""
        await self._client.close()
