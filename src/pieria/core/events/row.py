"""The shape of one row of the event table."""

from __future__ import annotations

from typing import Literal

import msgspec

from pieria.core.values import Value

Barrier = Literal["barrier", "relaxed"]
Writer = Literal["log", "accept", "decide", "perform", "recovery"]


class Event(Value, frozen=True, gc=False):
    """Base of every event's data: a small fact in the past tense."""


class Row(msgspec.Struct, frozen=True):
    """One event type: who writes it, whether effects wait for it, what it opens or closes, what recovery does.

    `opens`: the record starts an operation under its own id. `closes`: names of the types whose operation it ends.
    """

    name: str
    cls: type[Event]
    writers: tuple[Writer, ...]
    recovery: str
    v: int = 1
    barrier: Barrier = "barrier"
    opens: bool = False
    closes: tuple[str, ...] = ()
