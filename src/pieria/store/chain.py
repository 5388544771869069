"""Where a log stands: everything that the next record follows on. Scanning builds it, writing carries it on."""

from __future__ import annotations

from array import array

from pieria.core.record import FIRST_PREV

NOWHERE = 2**64 - 1
"""Offset of a record that a damaged log has lost."""

LINE_BYTES = 1_000_000
"""No line is longer, newline included."""


class Chain:
    """Mutable on purpose: `counts` is the next n of each agent, `offsets` where each record begins.

    `blobs` has the complete contents only: sha256 to the first part's seq and the content's length.
    """

    __slots__ = ("blobs", "counts", "epoch", "next_seq", "offsets", "prev", "said", "size", "time")

    def __init__(self) -> None:
        self.next_seq = 0
        self.prev = FIRST_PREV
        self.time = ""
        self.epoch = 0
        self.said = -1
        self.size = 0
        self.counts: dict[str, int] = {}
        self.offsets = array("Q")
        self.blobs: dict[str, tuple[int, int]] = {}
