"""Reads records for people and programs: complete, verified lines alone, of a log that may still be growing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Iterator

from pieria.core.record import FIRST_PREV, Record, type_name
from pieria.store.chain import LINE_BYTES
from pieria.store.lines import read
from pieria.store.open import opened_file
from pieria.store.scan import Scan

POLL_S = 0.1
REMEMBERED = 256
"""Lines that may be taken back: a writer cuts off what a failed append left."""


def records(
    path: str,
    *,
    agent: str = "",
    type: str = "",
    from_seq: int = 0,
    to_seq: int | None = None,
) -> Iterator[Record]:
    """Yield a log's sound records that match, `to_seq` included. Damage is left out: `verify` names it."""
    with opened_file(path) as file:
        for record in Scan(file).records():
            if to_seq is not None and record.seq > to_seq:
                return
            if record.seq < from_seq or (agent and record.agent != agent):
                continue
            if not type or type_name(record) == type:
                yield record


async def follow(path: str, *, poll_s: float = POLL_S) -> AsyncIterator[Record]:
    """Yield every sound record from the first on, and new ones as they come, for ever.

    Ends at damage that more writing can't mend. After a failed append a seq may come again with other content.
    """
    from asyncio import sleep

    place = _Place()
    while True:
        with opened_file(path) as file:
            fd = file.fileno()
            while True:
                data = os.pread(fd, LINE_BYTES + 1, place.at)
                for line in _lines(data):
                    record = read(line)
                    if record is None or not place.take(record, len(line)):
                        break
                    yield record
                else:
                    if b"\n" in data:
                        continue
                    await sleep(poll_s)
                    if _replaced(path, fd):
                        break
                    continue
                if not place.step_back(fd):
                    return


class _Place:
    """Where a follower is, and the lines before that."""

    def __init__(self) -> None:
        self.at = 0
        self._seq = 0
        self._prev = FIRST_PREV
        self._before: deque[tuple[int, int, str, str]] = deque(maxlen=REMEMBERED)

    def take(self, record: Record, length: int) -> bool:
        """Move on over a line, if it is the one that comes next."""
        if record.seq != self._seq or record.prev != self._prev:
            return False
        self._before.append((self.at, self._seq, self._prev, record.hash))
        self.at, self._seq, self._prev = self.at + length, self._seq + 1, record.hash
        return True

    def step_back(self, fd: int) -> bool:
        """Forget lines that are no longer in the file. False: they all are."""
        found = False
        while self._before:
            at, seq, prev, digest = self._before[-1]
            line = next(_lines(os.pread(fd, LINE_BYTES + 1, at)), b"")
            record = read(line)
            if record is not None and record.hash == digest:
                break
            self._before.pop()
            self.at, self._seq, self._prev, found = at, seq, prev, True
        return found


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield the complete lines."""
    start = 0
    while (end := data.find(b"\n", start) + 1) > 0:
        yield data[start:end]
        start = end


def _replaced(path: str, fd: int) -> bool:
    """Whether the path leads to another file now: a rescued log."""
    try:
        return os.stat(path).st_ino != os.fstat(fd).st_ino
    except FileNotFoundError:
        return False
