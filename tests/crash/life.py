"""One life of a process on a machine: its steps are counted, and it may die at any of them.

Invariant: once dead, nothing that is left of it (a job on the loop, a thread) reaches the machine any more.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")

SPEED = 50
"""How much faster than the world's the clock of a life in process runs: waits of a second cost 20 ms."""


Halt = SystemExit
"""Stands for the death of the process: no `except Exception` sees it, and it stops the loop at once."""


class LawBroken(AssertionError):
    """Something was done that the log does not cover, or that recovery must never do."""


class _FastSelector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None):
        return super().select(timeout / SPEED if timeout is not None and timeout > 0 else timeout)


class FastLoop(asyncio.SelectorEventLoop):
    """A loop that is used for many lives; `clear` forgets what the last one had planned."""

    def __init__(self) -> None:
        super().__init__(_FastSelector())
        self.pool = Pool()
        self.set_default_executor(self.pool)

    def time(self) -> float:
        return super().time() * SPEED

    def clear(self) -> None:
        self._scheduled.clear()
        self._ready.clear()
        self._timer_cancelled_count = 0
        self._stopping = False


class Pool(ThreadPoolExecutor):
    """Threads that outlive a life; `idle` waits until the last one's are through."""

    def __init__(self) -> None:
        super().__init__(max_workers=4)
        self._busy: set[Future[Any]] = set()

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(*args, **kwargs)
        self._busy.add(future)
        future.add_done_callback(self._busy.discard)
        return future

    def idle(self) -> None:
        wait(list(self._busy))


class Clock:
    """Nanoseconds since 1970, at the same speed as the loop."""

    def __init__(self) -> None:
        self._began_ns, self._at_ns = time.time_ns(), time.monotonic_ns()

    def __call__(self) -> int:
        return self._began_ns + (time.monotonic_ns() - self._at_ns) * SPEED

    def now(self) -> str:
        seconds, rest = divmod(self(), 1_000_000_000)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06d}Z"


class Life:
    """Counts what a process does to its machine; at step `stop_at` (from 1) it dies, before it or half-way through."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, stop_at: int = 0) -> None:
        self.loop = loop
        self.stop_at = stop_at
        self.count = 0
        self.dead = False
        self.log: Any = None
        self.session: Any = None
        self.intents: dict[str, int] = {}
        self.marks = 0
        self.troubles: list[str] = []
        self.steps: list[str] = []
        self.at_death: Callable[[], object] = lambda: None
        self.after_step: Callable[[str], object] = lambda _: None
        self._changed = asyncio.Event()
        self._thread = threading.get_ident()
        self._lock = threading.RLock()

    def step(self, name: str, do: Callable[[], T], *, half: Callable[[], object] | None = None) -> T:
        """Do something to the machine, unless dead. `half`: what a death in the middle of it leaves done."""
        with self._lock:
            if self.dead:
                raise Halt
            self.count += 1
            self.steps.append(name)
            if self.count == self.stop_at:
                if half is not None:
                    half()
                self.die()
            result = do()
            self.after_step(name)
            self.wake()
            return result

    def die(self) -> None:
        """End this life now."""
        self.dead = True
        self.loop.call_soon_threadsafe(_halt)
        raise Halt

    def wake(self) -> None:
        """Let whoever waits for something to change look again."""
        if threading.get_ident() == self._thread:
            self._changed.set()
        else:
            self.loop.call_soon_threadsafe(self._changed.set)

    async def until(self, claim: Callable[[], object]) -> None:
        """Wait until a claim about the session or the machine is true."""
        while not claim():
            self._changed.clear()
            await self._changed.wait()

    def demand(self, claim: object, words: str) -> None:
        """A law that holds at this moment, whatever happens next."""
        if not claim and not self.dead:
            self.troubles.append(words)

    def covered(self, key: str, what: str) -> None:
        """The intent recorded under a key must be durable by now."""
        seq = self.intents.get(key)
        durable = self.log.durable if self.log is not None else -1
        self.demand(seq is not None, f"{what}: nothing was recorded before")
        self.demand(seq is None or seq <= durable, f"{what}: record {seq} is not durable yet ({durable})")


def _halt() -> None:
    raise Halt


def bury(life: Life, loop: FastLoop) -> None:
    """End what is left of a life: its jobs, its threads, its hold on the log."""
    life.dead = True
    while not _rest(loop, asyncio.sleep(0)):  # a job cancelled before its first step would leave its coroutine behind
        continue
    for _ in range(100):
        left = [job for job in asyncio.all_tasks(loop) if not job.done()]
        if not left:
            break
        for job in left:
            job.cancel()
        _rest(loop, asyncio.wait(left, timeout=1))
    loop.pool.idle()
    life.at_death()
    if life.log is not None:
        life.log.drop()
    loop.clear()


def _rest(loop: FastLoop, awaited: Any) -> bool:
    """Let a dead life's jobs come to their ends. False: one of them tried to do something."""
    try:
        loop.run_until_complete(awaited)
    except Halt:
        return False
    except RuntimeError:  # the loop had been told to stop by the life that was cut off
        return False
    return True
