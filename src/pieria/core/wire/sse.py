"""Server-sent events from bytes cut anywhere. Pure; lines end at CR, LF or CRLF and at nothing else.

Splitting is done on bytes and decoding on whole lines, so neither U+2028 in a text nor a character cut in two
by a read can do harm.
"""

from __future__ import annotations

import msgspec

LIMIT_BYTES = 32 * 1024 * 1024
"""Most bytes that one event may hold: a server that never ends a line must not fill the memory."""

_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its data lines joined by newlines, and its name ("" when the server gave none)."""

    data: str
    name: str = ""


class TooLong(msgspec.Struct, frozen=True, gc=False):
    """An event passed the limit: the stream can't be read on, and the parser says nothing more."""

    limit_bytes: int


class SseParser:
    """Turns the bytes of one stream into events; `finish` once, at a clean end of the stream only."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._open_line: list[bytes] = []
        self._data: list[bytes] = []
        self._name = ""
        self._held_bytes = 0
        self._after_cr = False
        self._at_start = True
        self._dead = False

    def feed(self, data: bytes) -> list[SseEvent | TooLong]:
        """Return the events that these bytes complete."""
        if self._dead or not data:
            return []
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
            if not data:
                return []
        self._after_cr = data[-1:] == b"\r"
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        found: list[SseEvent | TooLong] = []
        for line in lines:
            if not self._hold(line, found):
                return found
            self._take(b"".join(self._open_line), found)
            self._open_line.clear()
        if rest:
            self._hold(rest, found)
        return found

    def finish(self) -> list[SseEvent | TooLong]:
        """Return what the last line and event hold even without their ends: some servers leave those out."""
        found = self.feed(b"\n") if self._open_line else []
        self._dispatch(found)
        self._dead = True
        return found

    def _hold(self, piece: bytes, found: list[SseEvent | TooLong]) -> bool:
        """Keep a piece of the open line; False once the event has passed the limit."""
        self._open_line.append(piece)
        self._held_bytes += len(piece)
        if self._held_bytes <= self._limit:
            return True
        self._dead = True
        self._open_line.clear()
        self._data.clear()
        found.append(TooLong(self._limit))
        return False

    def _take(self, line: bytes, found: list[SseEvent | TooLong]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(found)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            return
        self._held_bytes -= len(line)
        if field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self, found: list[SseEvent | TooLong]) -> None:
        if self._data and not self._dead:
            found.append(SseEvent(b"\n".join(self._data).decode("utf-8", "replace"), self._name))
        self._data.clear()
        self._name = ""
        self._held_bytes = 0
