"""Reads one response to a Chat Completions request to its end, and says what it was. Never raises for the world.

An answer counts only when its end marker came: a finish reason, or [DONE]. Whatever a cut stream holds is void.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from pieria.core.ports import Answer, BrokenStream, Failure
from pieria.core.wire.sse import LIMIT_BYTES, SseEvent, SseParser
from pieria.models.answer import Assembly
from pieria.models.exchange import CutResponse, Reply, Timeouts
from pieria.models.refusal import failure, spoken_failure, title
from pieria.models.text import excerpt

ERROR_BYTES = 65536
ANSWER_BYTES = 4 * LIMIT_BYTES
"""Most bytes of one stream: a server that never ends must not fill the memory."""
ERROR_BODY_S = 10.0

Outcome = Answer | BrokenStream | Failure


class Reading:
    """One response being read. `settled`: the connection is in a known state and may carry another request."""

    def __init__(self, reply: Reply, on_text: Callable[[str], None], *, timeouts: Timeouts, secret: str) -> None:
        self._reply = reply
        self._on_text = on_text
        self._timeouts = timeouts
        self._secret = secret
        self._bytes = 0
        self._quiet_s = 0.0
        self.settled = False

    async def outcome(self) -> Outcome:
        """Read everything and return what it was."""
        if not 200 <= self._reply.status < 300:
            return failure(self._reply.status, self._reply.headers, await self._error_body(), secret=self._secret)
        if (coding := self._reply.headers.get("content-encoding", "identity").lower()) != "identity":
            return self._bad_answer(f"the answer is compressed ({coding}), which was not asked for")
        start = b""
        try:
            while not start.lstrip(b"\xef\xbb\xbf \t\r\n"):
                data = await self._read(self._timeouts.first_byte_s)
                if not data:
                    self.settled = True
                    return self._broken("the answer was empty")
                start += data
            match start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]:
                case b"{" | b"[":
                    return await self._whole(start)
                case b"<":
                    return self._bad_answer(f"a web page came instead of an answer: {title(await self._some(start))}")
            return await self._stream(start)
        except CutResponse as cut:
            return self._broken(str(cut))

    async def _read(self, timeout_s: float) -> bytes:
        data = await self._reply.read(timeout_s=timeout_s)
        self._bytes += len(data)
        if self._bytes > ANSWER_BYTES:
            raise CutResponse(f"the answer passed {ANSWER_BYTES} bytes")
        return data

    async def _stream(self, data: bytes) -> Outcome:
        parser, assembly = SseParser(), Assembly()
        any_event = False
        try:
            while True:
                events = parser.feed(data) if data else parser.finish()
                for event in events:
                    if (outcome := self._take(event, assembly)) is not None:
                        return outcome
                if not data:
                    break
                any_event = any_event or bool(events)
                data = await self._next(events, assembly)
        except CutResponse:
            if not assembly.done:
                raise
            return assembly.answer()
        self.settled = True
        if assembly.done:
            return assembly.answer()
        if not any_event and "event-stream" not in self._reply.headers.get("content-type", "event-stream"):
            return self._bad_answer("the answer is no stream of events")
        return self._broken("the stream ended without a finish reason")

    async def _next(self, events: Sequence[object], assembly: Assembly) -> bytes:
        """Read on, but not for ever without events. Only waits count, so that a stopped clock does no harm."""
        if events:
            self._quiet_s = 0.0
        limits = self._timeouts
        timeout_s, quiet_s = limits.between_bytes_s, limits.only_pings_s
        if assembly.done:
            timeout_s = quiet_s = limits.tail_s
        clock = asyncio.get_running_loop().time
        began = clock()
        data = await self._read(timeout_s)
        self._quiet_s += min(clock() - began, timeout_s)
        if self._quiet_s > quiet_s:
            raise CutResponse(f"stalled: nothing but pings for {quiet_s:g} s")
        return data

    def _take(self, event: object, assembly: Assembly) -> Outcome | None:
        """Add one event; return the outcome if that is settled now."""
        if not isinstance(event, SseEvent):
            return self._broken("an event of the stream is too long")
        if event.data.strip() == "[DONE]":
            assembly.end()
            self.settled = True
            return assembly.answer()
        if not event.data.strip():
            return None
        chunk = parse_json(event.data)
        if not isinstance(chunk, dict):
            return self._broken(f"the stream holds something that is no JSON object: {event.data}")
        if (error := chunk.get("error")) or event.name == "error":
            return self._refused(error or chunk, began=assembly.began)
        if text := assembly.add(chunk):
            self._on_text(text)
        return None

    async def _whole(self, start: bytes) -> Outcome:
        """Read an answer that is no stream but one JSON document."""
        parts = [start]
        while data := await self._read(self._timeouts.between_bytes_s):
            parts.append(data)
        self.settled = True
        document = parse_json(b"".join(parts).decode("utf-8", "replace").lstrip("\ufeff"))
        if isinstance(document, list) and document:
            document = document[0]
        if not isinstance(document, dict):
            return self._broken("the answer is cut, or no JSON")
        if error := document.get("error"):
            return self._refused(error, began=False)
        if not isinstance(document.get("choices"), list):
            return self._bad_answer(f"the answer has no choices: {parts[0].decode('utf-8', 'replace')}")
        assembly = Assembly()
        text = assembly.add(document)
        if not assembly.done:
            return self._broken("the answer has no finish reason")
        if text:
            self._on_text(text)
        return assembly.answer()

    async def _some(self, start: bytes) -> str:
        """Read on as far as words for an error may reach."""
        parts, length = [start], len(start)
        while length < ERROR_BYTES and (data := await self._reply.read(timeout_s=ERROR_BODY_S)):
            parts.append(data)
            length += len(data)
        self.settled = length < ERROR_BYTES
        return b"".join(parts).decode("utf-8", "replace")

    async def _error_body(self) -> bytes:
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(ERROR_BODY_S):
                while sum(map(len, parts)) < ERROR_BYTES:
                    data = await self._reply.read(timeout_s=ERROR_BODY_S)
                    if not data:
                        self.settled = True
                        break
                    parts.append(data)
        except (CutResponse, TimeoutError):
            self.settled = False
        return b"".join(parts)

    def _refused(self, error: object, *, began: bool) -> BrokenStream | Failure:
        refusal = spoken_failure(error, status=self._reply.status, secret=self._secret)
        return self._broken(f"an error in the middle of the stream: {refusal.message}") if began else refusal

    def _broken(self, detail: str) -> BrokenStream:
        return BrokenStream(excerpt(detail, secret=self._secret), self._bytes)

    def _bad_answer(self, message: str) -> Failure:
        return Failure("bad_answer", excerpt(message, secret=self._secret), self._reply.status)


def parse_json(text: str) -> object:
    """Parse JSON as servers write it: NaN and lone surrogates too. None for anything else."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        return None
    except (msgspec.DecodeError, UnicodeEncodeError):
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None
