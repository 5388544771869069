"""What adapters need of HTTP: one answered request, and how one fails. No sockets: fakes can play it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Timeouts(msgspec.Struct, frozen=True, gc=False):
    """Longest silences. A model may think long before its first byte, not so long in the middle of a word.

    `only_pings_s`: bytes come, but no event. `tail_s`: the answer is whole, but the stream does not end.
    """

    connect_s: float = 30.0
    first_byte_s: float = 300.0
    between_bytes_s: float = 120.0
    only_pings_s: float = 900.0
    tail_s: float = 10.0


class NoResponse(Exception):
    """Nothing came back: no connection, or it died or fell silent before a response began."""


class CutResponse(Exception):
    """A response began and can't be read to its end."""


class Reply(Protocol):
    """A response whose status and header are there. `headers` has lower-case names."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self, *, timeout_s: float) -> bytes:
        """Return the next bytes of the body, b"" at its proper end. Raises CutResponse."""
        ...


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait: seconds or a date, never negative; None when it doesn't say."""
    if (text := headers.get("retry-after-ms")) is not None and (value := _number(text)) is not None:
        return value / 1000
    text = headers.get("retry-after", "").strip()
    if not text or (value := _number(text)) is not None:
        return value if text else None
    if (until := _date_s(text)) is None:
        return None
    now = _date_s(headers.get("date", ""))
    if now is None:
        import time

        now = time.time()
    return max(0.0, until - now)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if value - value == 0 else None  # neither NaN nor infinite


def _date_s(text: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
