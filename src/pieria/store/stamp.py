"""Times as they stand in records: UTC text that sorts, and never goes back."""

from __future__ import annotations

from collections.abc import Callable
from time import gmtime, strftime

Clock = Callable[[], int]
"""Nanoseconds since 1970, like time.time_ns."""


class Stamp:
    """Formats a clock; keeps the text of the second it is in, which most records share."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = -1
        self._text = ""

    def __call__(self, last: str) -> str:
        """Return the time now, or `last` when the clock was set back before it."""
        second, rest = divmod(self._clock(), 1_000_000_000)
        if second != self._second:
            self._second, self._text = second, strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))
        return max(f"{self._text}.{rest // 1000:06d}Z", last)
