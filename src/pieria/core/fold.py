"""Fold one record into the state: total, without a decision of its own. The features do the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from pieria.core import calls, roster, timers, turn
from pieria.core.record import Record
from pieria.core.state import State

FOLDS: dict[type, Callable[[State, Record, Any], State]] = {
    **roster.FOLDS, **turn.FOLDS, **calls.FOLDS, **timers.FOLDS,
}  # fmt: skip


def fold(state: State, record: Record) -> State:
    """Return the state after the record. A kind that is not known changes nothing but the position."""
    change = FOLDS.get(type(record.data))
    if change is not None:
        state = change(state, record, record.data)
    return replace(state, seq=record.seq, time=record.time, epoch=record.epoch)
