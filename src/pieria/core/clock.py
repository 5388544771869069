"""Arithmetic on recorded times. There is no clock here: the time is that of the last record."""

from __future__ import annotations

from datetime import datetime, timedelta


def later(time: str, seconds: float) -> str:
    """Return the recorded time moved by some seconds, in the same form."""
    return f"{(_parse(time) + timedelta(seconds=seconds)).isoformat(timespec='microseconds')[:26]}Z"


def seconds_between(start: str, end: str) -> float:
    """Return how many seconds lie between two recorded times; negative when `end` is earlier."""
    return (_parse(end) - _parse(start)).total_seconds()


def _parse(time: str) -> datetime:
    return datetime.fromisoformat(time.removesuffix("Z") + "+00:00")
