"""Group commit: one sync at a time in one thread of its own, begun only when someone waits or the timer is due.

Invariant: `durable` never runs ahead of a sync that began after the record was written. A failed one is never repeated.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pieria.core.errors import PieriaError
from pieria.store.disk import Disk
from pieria.store.faults import LogFrozen, frozen

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, TimerHandle
    from queue import SimpleQueue
    from threading import Thread

T = TypeVar("T")

RELAXED_S = 0.25
"""A record that nobody waits for is synced after this long."""

IDLE_S = 1.0
HANGS_S = 5.0


class Lane:
    """One daemon thread that does blocking jobs in order; it starts with its first job."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] | None = None
        self._worker: Thread | None = None

    def put(self, job: Callable[[], None]) -> None:
        """Do a job after those before it. It must not raise."""
        if self._jobs is None:
            from queue import SimpleQueue
            from threading import Thread

            self._jobs = SimpleQueue()
            self._worker = Thread(target=_work, args=(self._jobs,), name="pieria-log", daemon=True)
            self._worker.start()
        self._jobs.put(job)

    async def wait_for(self, job: Callable[[], T]) -> T:
        """Do a job that may raise OSError or PieriaError, and return or raise what it does."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        done: Future[T] = loop.create_future()

        def work() -> None:
            try:
                answer = partial(_answer, done, job())
            except (OSError, PieriaError) as problem:
                answer = partial(_refuse, done, problem)
            _tell(loop, answer)

        self.put(work)
        return await done

    def close(self) -> None:
        """Wait until the jobs it has are done: their descriptor is closed next. A disk that hangs is left alone."""
        if self._jobs is not None and self._worker is not None:
            self._jobs.put(None)
            self._worker.join(HANGS_S)


class Barrier:
    """The durable watermark of one descriptor.

    `publish` is done after the first sync and before anything counts as durable: it gives a new log its name.
    """

    def __init__(
        self, fd: int, path: str, *, disk: Disk, written: int, durable: int, publish: Callable[[], None] | None = None
    ) -> None:
        self.fd = fd
        self.written = written
        self.durable = durable
        self.frozen: PieriaError | None = None
        self.lane = Lane()
        self.when_idle: Callable[[], None] = _nothing
        self._path = path
        self._disk = disk
        self._publish = publish
        self._listeners: list[Callable[[int], None]] = []
        self._waiting: list[tuple[int, Future[None]]] = []
        self._finished: deque[tuple[int, PieriaError | None]] = deque()
        self._loop: AbstractEventLoop | None = None
        self._relaxed: TimerHandle | None = None
        self._idle: TimerHandle | None = None
        self._unsynced_since = 0.0
        self._began = 0.0
        self._last_write = 0.0
        self.busy = False

    def on_durable(self, listener: Callable[[int], None]) -> None:
        """Call `listener` with the watermark each time it rises, after those who waited were woken."""
        self._listeners.append(listener)

    def wrote(self, seq: int) -> None:
        """Count everything up to `seq` as written."""
        if self._finished:
            self.collect()
        clean = self.written <= self.durable
        self.written = seq
        loop = self._loop or self._find_loop()
        if loop is None:
            return
        self._last_write = loop.time()
        if clean:
            self._unsynced_since = self._last_write
        if self._relaxed is None:
            self._relaxed = loop.call_later(RELAXED_S, self._relaxed_due)

    async def synced(self, seq: int) -> None:
        """Return when `seq` is durable. Raises what froze the log, for every waiter alike."""
        assert seq <= self.written, "nobody can wait for a record that was not written"
        loop = self._loop or self._find_loop()
        assert loop is not None
        self.collect()
        while self.durable < seq:
            if self.frozen is not None:
                raise self.frozen
            waiter: Future[None] = loop.create_future()
            self._waiting.append((seq, waiter))
            self.begin()
            await waiter

    def begin(self) -> None:
        """Start a sync unless one is in flight: it covers all that is written when the thread comes to it."""
        if self.busy or self.frozen is not None:
            return
        self.busy = True
        self._began = self._loop.time() if self._loop is not None else 0.0
        self.lane.put(self._sync)

    def thaw(self, fd: int, *, durable: int) -> None:
        """Go on with another descriptor, on which everything up to `durable` was verified and synced."""
        self.fd, self.frozen, self._publish = fd, None, None
        self._settle(durable, None)

    def close(self) -> None:
        """Drop timers and the thread; nobody may wait any more."""
        for timer in (self._relaxed, self._idle):
            if timer is not None:
                timer.cancel()
        self.lane.close()

    def collect(self) -> None:
        """Take over the results of syncs; called on the loop, or before there is one."""
        while self._finished:
            target, problem = self._finished.popleft()
            self.busy = False
            self._settle(target, problem)

    def _sync(self) -> None:
        """In the thread: read the target first, so that what is written during the sync does not count."""
        target, problem = self.written, None
        try:
            self._disk.fdatasync(self.fd)
            if self._publish is not None:
                self._publish()
                self._publish = None
        except OSError as fault:
            problem = frozen(self._path, fault, disk=self._disk, fd=self.fd)
        except PieriaError as fault:
            problem = LogFrozen(str(fault), fault.hint)
        self._finished.append((target, problem))
        if self._loop is not None:
            _tell(self._loop, self.collect)

    def _settle(self, target: int, problem: PieriaError | None) -> None:
        if problem is not None:
            self.frozen = problem
            waiting, self._waiting = self._waiting, []
            for _, waiter in waiting:
                if not waiter.done():
                    waiter.set_exception(problem)
            return
        rose = target > self.durable
        self.durable = max(self.durable, target)
        still = []
        for seq, waiter in self._waiting:
            if waiter.done():
                continue
            if seq <= self.durable:
                waiter.set_result(None)
            else:
                still.append((seq, waiter))
        self._waiting = still
        self._unsynced_since = self._began
        if still:
            self.begin()
        if rose:
            for listener in self._listeners:
                listener(self.durable)
            if self._loop is not None and self._idle is None:
                self._idle = self._loop.call_later(IDLE_S, self._idle_due)

    def _relaxed_due(self) -> None:
        self._relaxed = None
        if self.written <= self.durable or self.frozen is not None:
            return
        loop = self._loop
        assert loop is not None
        left = self._unsynced_since + RELAXED_S - loop.time()
        if left > 0 or self.busy:
            self._relaxed = loop.call_later(max(left, RELAXED_S / 5), self._relaxed_due)
            return
        self.begin()

    def _idle_due(self) -> None:
        self._idle = None
        loop = self._loop
        assert loop is not None
        left = self._last_write + IDLE_S - loop.time()
        if left > 0:
            self._idle = loop.call_later(left, self._idle_due)
            return
        self.when_idle()

    def _find_loop(self) -> AbstractEventLoop | None:
        """Bind to the running loop. A log may be created before asyncio is even imported."""
        if "asyncio" not in sys.modules:
            return None
        from asyncio import get_running_loop

        try:
            self._loop = get_running_loop()
        except RuntimeError:
            return None
        return self._loop


def _work(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()


def _tell(loop: AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call back on the loop; a loop that was closed meanwhile has nobody left to tell."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        assert loop.is_closed()


def _answer(done: Future[T], result: T) -> None:
    if not done.done():
        done.set_result(result)


def _refuse(done: Future[T], problem: Exception) -> None:
    if not done.done():
        done.set_exception(problem)


def _nothing() -> None:
    return None
