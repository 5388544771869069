"""Reads a log from its first byte, one line in memory at a time: only what verifies and follows on is handed out.

Invariant: nothing after the first bad byte is handed out unless a later sound record proves the bad part was durable.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

import msgspec

from pieria.core.events.session import BlobStored, SessionClosed, SessionCreated, SessionOpened
from pieria.core.record import Record, UnknownData, is_ignorable, type_name
from pieria.store.chain import LINE_BYTES, NOWHERE, Chain
from pieria.store.lines import pieces, read

BUFFER = 1 << 18
NOTED = frozenset({BlobStored, SessionClosed, SessionCreated, SessionOpened, UnknownData})
"""Data that opening needs to look at; everything else only passes through."""


class Gap(msgspec.Struct, frozen=True):
    """Damage: bytes [start, end) are no records; seqs [first, next) are missing. `next` None: nobody knows.

    Both may be empty: then records stand there as no writer puts them.
    """

    start: int
    end: int
    first: int
    next: int | None


class Scan:
    """One pass over a file. Everything but `records` is to be read after that is exhausted.

    `torn_at` is where an unacknowledged tail begins; `gaps` is damage to what was durable; `unknown` names records
    that only a later version understands.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.chain = Chain()
        self.gaps: list[Gap] = []
        self.torn_at: int | None = None
        self.unknown: list[str] = []
        self.header: SessionCreated | None = None
        self.unclean_ends = 0
        self.copies: set[str] = set()
        self._file = file
        self._open = False
        self._partial: tuple[str, int, int] = ("", -1, -1)

    def records(self) -> Iterator[Record]:
        """Yield the sound records in order, then classify what is left."""
        chain = self.chain
        counts, add_offset = chain.counts, chain.offsets.append
        expect, at, prev, time, epoch, said = 0, 0, chain.prev, "", 0, -1
        bad = False
        for line in iter(partial(self._file.readline, LINE_BYTES + 1), b""):
            record = read(line)
            if (
                record is None
                or record.seq != expect
                or record.prev != prev
                or record.n != counts.get(record.agent, 0)
                or record.time < time
                or record.epoch < epoch
                or not said <= record.durable < expect
            ):
                bad = True
                break
            add_offset(at)
            at += len(line)
            expect += 1
            counts[record.agent] = record.n + 1
            prev, time, epoch, said = record.hash, record.time, record.epoch, record.durable
            if type(record.data) in NOTED:
                self._note(record)
            yield record
        chain.next_seq, chain.size, chain.prev, chain.time = expect, at, prev, time
        chain.epoch, chain.said = epoch, said
        if bad and self._covered(at, expect):
            yield from self._rest(at)
        elif bad:
            self.torn_at = at
        if self._open:
            self.unclean_ends += 1

    def _covered(self, at: int, seq: int) -> bool:
        """Whether a sound record after `at` says that `seq` was durable once, or its predecessor another one."""
        before = self.chain.prev
        return any(
            record.durable >= seq or (record.seq == seq == record.durable + 1 and record.prev != before)
            for _, _, record in self._candidates(at)
        )

    def _candidates(self, at: int) -> Iterator[tuple[int, int, Record]]:
        """Yield what is sound by itself after a bad place, with its bytes' start and end."""
        self._file.seek(at)
        for line in iter(partial(self._file.readline, LINE_BYTES + 1), b""):
            for start, end, piece in pieces(line):
                record = read(piece)
                if record is not None and record.durable < record.seq:
                    yield at + start, at + end, record
            at += len(line)

    def _rest(self, at: int) -> Iterator[Record]:
        """Yield what is sound after damage, in rising order, and name the gaps."""
        chain, first_bad, first = self.chain, at, self.chain.next_seq
        whole = at
        for start, end, record in self._candidates(at):
            expect = chain.next_seq
            if record.seq < expect or record.seq - expect > end:  # a line is longer than one byte
                continue
            if start != whole or record.seq != expect or record.prev != chain.prev:
                self.gaps.append(Gap(whole, start, expect, record.seq))
            chain.offsets.extend([NOWHERE] * (record.seq - expect))
            chain.offsets.append(start)
            chain.next_seq, chain.size, chain.prev = record.seq + 1, end, record.hash
            chain.time, chain.epoch, chain.said = record.time, record.epoch, record.durable
            chain.counts[record.agent] = record.n + 1
            whole = end
            if type(record.data) in NOTED:
                self._note(record)
            yield record
        size = self._file.seek(0, 2)
        if whole != size:
            self.gaps.append(Gap(whole, size, chain.next_seq, None))
        if not self.gaps:  # every record is there, but lines are fused or fields do not rise
            self.gaps.append(Gap(first_bad, first_bad, first, first))

    def _note(self, record: Record) -> None:
        match record.data:
            case BlobStored() as blob:
                self._note_blob(record.seq, blob)
            case SessionOpened(torn=torn):
                self.unclean_ends += self._open
                self._open = True
                if torn is not None:
                    self.copies.add(torn.copy.rpartition("/")[2])
            case SessionClosed():
                self._open = False
            case SessionCreated() as created:
                if record.seq == 0:
                    self.header = created
            case UnknownData() if not is_ignorable(record):
                self.unknown.append(f"record {record.seq} ({type_name(record)}, version {record.v})")

    def _note_blob(self, seq: int, blob: BlobStored) -> None:
        """Count a content as known once all its parts are there, one after another."""
        if blob.part == 0:
            self._partial = (blob.sha256, seq, 0)
        elif self._partial != (blob.sha256, seq - blob.part, blob.part - 1):
            self._partial = ("", -1, -1)
            return
        else:
            self._partial = (blob.sha256, seq - blob.part, blob.part)
        if blob.part == blob.parts - 1:
            self.chain.blobs.setdefault(blob.sha256, (seq - blob.part, blob.len))
