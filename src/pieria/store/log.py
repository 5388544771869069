"""The one writer of a session's log. What is on disk, in memory and in the chain moves together or not at all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence

from pieria.core.errors import PieriaError
from pieria.core.events.session import Mark
from pieria.core.record import Draft, Record
from pieria.core.values import SESSION
from pieria.store.batch import Batch, batch_of
from pieria.store.blobs import LogTexts
from pieria.store.chain import Chain
from pieria.store.disk import Disk
from pieria.store.faults import FULL, LogPaused, paused
from pieria.store.rescue import rescued
from pieria.store.stamp import Clock, Stamp
from pieria.store.sync import Barrier

RESERVE_BYTES = 262_144


class Log:
    """Appends records and tells when they are durable. Used from one event loop; holds the lock while it lives.

    `frozen` is what a failed sync left behind: then only `rescue` and `close` help.
    """

    def __init__(self, fd: int, path: str, *, chain: Chain, clock: Clock, disk: Disk, barrier: Barrier) -> None:
        self.path = path
        self.texts = LogTexts(fd, path, offsets=chain.offsets)
        self._fd = fd
        self._chain = chain
        self._stamp = Stamp(clock)
        self._disk = disk
        self._barrier = barrier
        self._unsynced: deque[tuple[int, bytes]] = deque()
        self._own: list[Callable[[Record], None]] = []
        self._last_is_mark = False
        self._ragged = False
        self._reserving = False
        self._reserved_to = 0
        barrier.when_idle = self._mark
        barrier.on_durable(self._forget)

    @property
    def next_seq(self) -> int:
        """The sequence number that the next record gets."""
        return self._chain.next_seq

    @property
    def epoch(self) -> int:
        """How many times the session was opened, this time included."""
        return self._chain.epoch

    @property
    def durable(self) -> int:
        """The highest seq known to survive a power cut; -1 while there is none."""
        return self._barrier.durable

    @property
    def frozen(self) -> PieriaError | None:
        """Why nothing can be written any more, or None."""
        return self._barrier.frozen

    def on_durable(self, listener: Callable[[int], None]) -> None:
        """Call `listener` with the watermark each time it rises."""
        self._barrier.on_durable(listener)

    def on_own(self, listener: Callable[[Record], None]) -> None:
        """Call `listener` with each record that the log adds by itself: contents, before what cites them, and marks."""
        self._own.append(listener)

    async def synced(self, seq: int) -> None:
        """Return when `seq` is durable, and the file has its name. Raises LogFrozen when that can't be."""
        await self._barrier.synced(seq)

    def append(self, drafts: Sequence[Draft], *, outcome: bool = False) -> tuple[Record, ...]:
        """Write all drafts or none, and return their records. Raises LogPaused when the disk refuses.

        `outcome`: they close running effects, so the reserve may be used.
        """
        barrier = self._barrier
        if barrier.frozen is not None:
            raise barrier.frozen
        chain = self._chain
        batch = batch_of(drafts, chain, durable=barrier.durable, time=self._stamp(chain.time))
        if self._ragged:
            self._trim()
        if self._reserving and not outcome:
            self._keep_reserve(batch.size)
        self._write(batch)
        batch.commit()
        for record, line, own in batch.lines:
            self._unsynced.append((record.seq, line))
            if own:
                for listener in self._own:
                    listener(record)
        if batch.lines:
            self._last_is_mark = False
            barrier.wrote(chain.next_seq - 1)
        return tuple([record for record, _, own in batch.lines if not own])

    def begin(self, draft: Draft) -> Record:
        """Write record 0 and start making it durable, with nobody waiting yet."""
        (record,) = self.append((draft,))
        self._barrier.begin()
        return record

    def reserve(self) -> bool:
        """Set blocks aside for outcomes; from now on other records leave them alone. False: not possible here.

        Call it once the first request is out: it is not for the start of a session.
        """
        self._reserving, self._reserved_to = True, 0
        try:
            self._reserve_to(self._chain.size + RESERVE_BYTES)
        except OSError as problem:
            self._reserving = problem.errno in FULL
        return self._reserving

    async def rescue(self) -> None:
        """After a failed sync: write what verifies on disk and what was never durable to a new file in its place.

        Raises PieriaError with the path when that fails too; the log then stays frozen.
        """
        barrier, chain = self._barrier, self._chain
        assert barrier.frozen is not None, "only a frozen log is rescued"
        durable = barrier.durable
        sound = chain.offsets[durable + 1] if durable + 1 < chain.next_seq else chain.size
        lines = [line for _, line in self._unsynced]

        def work() -> int:
            return rescued(self._fd, self.path, sound=sound, lines=lines, disk=self._disk)

        fd = await barrier.lane.wait_for(work)
        os.close(self._fd)
        self._fd = self.texts.fd = fd
        self._ragged = False
        if self._reserving:
            self.reserve()
        barrier.thaw(fd, durable=chain.next_seq - 1)

    async def close(self) -> None:
        """Make everything durable that can be, give the reserve back and let go of the lock."""
        try:
            if self._barrier.frozen is None and self._barrier.durable < self._barrier.written:
                await self.synced(self._barrier.written)
        finally:
            self.drop()

    def drop(self) -> None:
        """Let go of the lock at once, without a sync: as a dying process would."""
        self._barrier.close()
        try:
            if self._reserving and not self._ragged:
                self._disk.ftruncate(self._fd, self._chain.size)
        except OSError:
            self._reserving = False  # the blocks stay: nothing is lost but space
        os.close(self._fd)

    def _write(self, batch: Batch) -> None:
        write, fd, whole = self._disk.write, self._fd, False
        problem = None
        try:
            for _, line, _ in batch.lines:
                if (taken := write(fd, line)) != len(line):
                    write(fd, line[taken:])  # says why, as a rule; what it takes is cut off again
                    break
            else:
                whole = True
        except OSError as fault:
            problem = fault
        finally:
            self._ragged = not whole
        if whole:
            return
        words = paused(self.path, problem, disk=self._disk, fd=fd)
        self._trim()
        raise words from problem

    def _trim(self) -> None:
        """Cut what a failed append left; nothing can be written before that worked."""
        try:
            if os.fstat(self._fd).st_size != self._chain.size:
                self._disk.ftruncate(self._fd, self._chain.size)
                if self._reserving:  # the cut gave the blocks back
                    self.reserve()
        except OSError as problem:
            raise paused(self.path, problem, disk=self._disk, fd=self._fd) from problem
        self._ragged = False

    def _keep_reserve(self, size: int) -> None:
        """Move the reserve on ahead of the next `size` bytes, or refuse them."""
        need = self._chain.size + size + RESERVE_BYTES
        if need <= self._reserved_to:
            return
        try:
            self._reserve_to(need + RESERVE_BYTES)
        except OSError:
            try:
                self._reserve_to(need)
            except OSError as problem:
                if problem.errno in FULL:
                    raise paused(self.path, problem, disk=self._disk, fd=self._fd) from problem
                self._reserving = False

    def _reserve_to(self, end: int) -> None:
        start = self._chain.size
        self._reserving = self._disk.reserve(self._fd, start, end - start)
        self._reserved_to = end

    def _mark(self) -> None:
        """Carry the watermark to disk after an idle second, unless the last record does that already."""
        if self._last_is_mark or self._chain.said >= self._barrier.durable or self._barrier.frozen is not None:
            return
        try:
            marks = self.append((Draft(SESSION, Mark()),))
        except LogPaused:
            return
        self._last_is_mark = True
        for record in marks:
            for listener in self._own:
                listener(record)

    def _forget(self, durable: int) -> None:
        unsynced = self._unsynced
        while unsynced and unsynced[0][0] <= durable:
            unsynced.popleft()
