"""Commands under gated supervisors that outlive us.

Invariant: a live command and one found again after a restart are waited for, ended and reported by the same code, from
the same folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from pieria.core.ports import Ended, Spawned
from pieria.workspace import ending, environment, living, spool, supervisor

OUTPUT_LIMIT_BYTES = 64 * 1024 * 1024
LOOK_S = 0.05
"""How often a running command's output and deadline are looked at."""
WATCH_AFTER_S = 1.0
"""A command that takes longer gets its watch awake beside us, in case that we are stopped or hang."""
INLINE_BYTES = 1024 * 1024
"""Larger outputs are read and hashed in a thread."""


class Job:
    """What this process holds of a job: descriptors of a supervisor that it started itself, and an end under way."""

    def __init__(self, folder: str, *, timeout_s: float = math.inf, gated: supervisor.Gated | None = None) -> None:
        self.folder = folder
        self.reattached = gated is None
        self.deadline = math.inf
        self.ending: asyncio.Task[None] | None = None
        self._timeout_s = timeout_s
        self._gated = gated
        self._gate = gated.gate if gated else -1
        self._watch = gated.watch if gated else -1

    def open_gate(self) -> None:
        """Say "go", once. A supervisor that is dead by now never runs its command; `wait` tells."""
        if self._gate >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._gate, b"go\n")
            self.deadline = time.monotonic() + self._timeout_s
            self.close_gate()

    def close_gate(self) -> None:
        """Close our end of the gate and reap the child that started the supervisor. May be repeated."""
        if self._gated and self._gate >= 0:
            os.close(self._gate)
            self._gate = -1
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._gated.starter, 0)

    def wake_watch(self) -> None:
        """Let the supervisor's own watch look too. It needs no second word."""
        if self._watch >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._watch, b"watch\n")
            self.close_watch()

    def close_watch(self) -> None:
        """Close our end of the watch: once the command has ended, so does the watch. May be repeated."""
        if self._watch >= 0:
            os.close(self._watch)
            self._watch = -1


class Commands:
    """The `Processes` port. `base` is our environment without its secrets; job folders stand under `root`."""

    def __init__(
        self,
        root: str,
        session: str,
        *,
        base: Mapping[str, str],
        also: Iterable[str] = (),
        grace_s: float = 2.0,
        output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
        sh: str = "/bin/sh",
        shell: str = "",
    ) -> None:
        self._root = root
        self._session = session
        self._environment = environment.allowed(base, "", also=also)
        self._grace_s = min(max(grace_s, 0.3), 2.0)
        self._limit = output_limit_bytes
        self._sh = sh
        self._shell = shell
        self._umask = -1
        self._boot_id = ""
        self._jobs: dict[str, Job] = {}
        self._ready: tuple[supervisor.Gated, int] | None = None

    def stand_by(self) -> None:
        """Start the next command's supervisor now, while nobody waits for it. Without a job it never runs anything.

        Of no effect before a first command: many sessions never have one.
        """
        if self._ready is not None or not self._boot_id:
            return
        limits = supervisor.Limits(0, 0, self._limit, self._grace_s)
        shells = (self._sh, self._shell)
        try:
            gated = supervisor.launch(
                "", "/", shells=shells, umask=self._umask, limits=limits, environment=self._environment
            )
        except OSError:
            return
        found = living.look(gated.pid)
        self._ready = (gated, found.start_time if found else -1)

    def close(self) -> None:
        """Let the supervisor that stands by go."""
        if self._ready is not None:
            gated, self._ready = self._ready[0], None
            held = Job("", gated=gated)
            held.close_gate()
            held.close_watch()

    def spawn(self, job: str, command: str, *, cwd: str, timeout_s: float) -> Spawned:
        """Start a supervisor that waits for `go`. Raises OSError, with nothing left behind."""
        if "\0" in command:
            raise OSError("a command can't hold a NUL character")
        if not os.path.isdir(cwd):
            raise FileNotFoundError(f"no such folder to run in: {cwd}")
        self._learn()
        folder = self._folder(job)
        seconds = math.ceil(min(max(timeout_s, 1), 1e9))
        spool.prepare(folder, command)
        limits = supervisor.Limits(seconds, int(time.time()) + seconds + 1, self._limit, self._grace_s)
        if (ready := self._assigned(job, folder, cwd, limits)) is not None:
            self._jobs[job] = Job(folder, timeout_s=timeout_s, gated=ready[0])
            return Spawned(ready[0].pid, ready[1], self._boot_id, job)
        given = {**self._environment, environment.MARK: self._mark(job)}
        shells = (self._sh, self._shell)
        try:
            gated = supervisor.launch(folder, cwd, shells=shells, umask=self._umask, limits=limits, environment=given)
        except OSError:
            spool.remove(folder)
            raise
        held = self._jobs[job] = Job(folder, timeout_s=timeout_s, gated=gated)
        found = living.look(gated.pid)
        if not found:
            self._drop(job, held)
            raise ChildProcessError("the supervisor died before its command began")
        return Spawned(gated.pid, found.start_time, self._boot_id, job)

    def _assigned(
        self, job: str, folder: str, cwd: str, limits: supervisor.Limits
    ) -> tuple[supervisor.Gated, int] | None:
        """The supervisor that stood by, now with this job; None when there is none, or it can't take it."""
        ready = self._ready
        if ready is None:
            return None
        if ready[1] < 0 or not supervisor.assign(ready[0], folder, cwd, limits=limits, mark=self._mark(job)):
            self.close()
            return None
        self._ready = None
        return ready

    def go(self, job: str) -> None:
        """Let a spawned command run, and start its time. Of no effect for a job of an earlier process."""
        if held := self._jobs.get(job):
            held.open_gate()

    def abandon(self, job: str) -> None:
        """Drop a spawned command that was never told to go, with its folder."""
        if held := self._jobs.get(job):
            self._drop(job, held)

    def forget(self, job: str) -> None:
        """Remove a job's folder, after its result is recorded. Safe in a thread."""
        if held := self._jobs.pop(job, None):
            held.close_gate()
            held.close_watch()
        spool.remove(self._folder(job))

    def forget_others(self, kept: Collection[str]) -> None:
        """Remove the folders of jobs that are neither `kept` nor this process's. Blocking; safe in a thread."""
        for job in spool.jobs(self._root):
            if job not in kept and job not in self._jobs:
                with contextlib.suppress(OSError):  # the next opening tries again
                    spool.remove(self._folder(job))

    async def wait(self, spawned: Spawned) -> Ended:
        """Wait for the end, and enforce deadline and output limit meanwhile. May be repeated until `forget`."""
        self._learn()
        held = self._held(spawned)
        folder = held.folder
        same_boot = spawned.boot_id == self._boot_id
        if same_boot:
            with _exit_of(spawned) as gone:
                await self._watched(spawned, held, gone)
            _reap(spawned.pid)
        held.close_watch()
        if same_boot and not held.ending and spool.began(folder) and not spool.closed(folder):
            self._begin_end(spawned, held, spool.LOST)
        await _ended(held)
        size = spool.output_bytes(folder)
        if size > self._limit:
            spool.note(folder, spool.OUTPUT)
            spool.cut_output(folder, self._limit)
        if size < INLINE_BYTES:
            return spool.collect(folder, same_boot=same_boot, reattached=held.reattached)
        return await asyncio.to_thread(spool.collect, folder, same_boot=same_boot, reattached=held.reattached)

    async def stop(self, spawned: Spawned) -> None:
        """TERM, then after the grace KILL, all that the command started, in its session or marked as its."""
        self._learn()
        held = self._held(spawned)
        held.close_gate()
        if spawned.boot_id == self._boot_id:
            if not held.ending:
                self._begin_end(spawned, held, spool.STOPPED)
            await _ended(held)

    def leftover(self) -> tuple[tuple[int, int, bytes], ...]:
        """Return pid, start time and arguments of each live process that commands of this session left behind."""
        entry = f"{environment.MARK}={self._session}.".encode()
        marked = (one for one in living.everyone() if ending.bears(one.pid, entry))
        found = ((one.pid, one.start_time, living.command_line(one.pid)) for one in marked)
        return tuple(one for one in found if not one[2].startswith(ending.SCRIPT))

    async def _watched(self, spawned: Spawned, held: Job, gone: asyncio.Future[None]) -> None:
        """Return when the supervisor is gone; begin the end of its command when it takes or writes too much."""
        begun = time.monotonic()
        while True:
            await asyncio.wait((gone,), timeout=LOOK_S)
            if gone.done():
                return
            now = time.monotonic()
            if now - begun > WATCH_AFTER_S:
                held.wake_watch()
            if held.ending:
                continue
            if now > held.deadline:
                self._begin_end(spawned, held, spool.DEADLINE)
            elif spool.output_bytes(held.folder) > self._limit:
                self._begin_end(spawned, held, spool.OUTPUT)

    def _begin_end(self, spawned: Spawned, held: Job, reason: str) -> None:
        """Begin an end that goes on even if nobody waits for it any more."""
        if not spool.closed(held.folder):
            spool.note(held.folder, reason)
        held.ending = asyncio.ensure_future(
            ending.end(
                spawned,
                self._mark(spawned.job),
                folder=held.folder,
                grace_s=0.3 if reason == spool.OUTPUT else self._grace_s,
                limit_bytes=self._limit,
            )
        )

    def _held(self, spawned: Spawned) -> Job:
        return self._jobs.setdefault(spawned.job, Job(self._folder(spawned.job)))

    def _drop(self, job: str, held: Job) -> None:
        held.close_gate()
        held.close_watch()
        self._jobs.pop(job, None)
        spool.remove(held.folder)

    def _folder(self, job: str) -> str:
        if not job or "/" in job or job.startswith("."):
            raise ValueError(f"not a name for a job: {job!r}")
        return f"{self._root}/{job}"

    def _mark(self, job: str) -> str:
        return f"{self._session}.{job}"

    def _learn(self) -> None:
        """Find out, before the first command, what stays the same for all of them."""
        if not self._boot_id:
            self._boot_id = living.boot_id()
            self._umask = living.umask()
        if not self._shell:
            folders = self._environment.get("PATH", os.defpath).split(":")
            places = (f"{folder}/bash" for folder in folders if folder.startswith("/"))
            self._shell = next((place for place in places if os.access(place, os.X_OK)), self._sh)


async def _ended(held: Job) -> None:
    """Wait for an end under way; whoever waits may be cancelled, the end may not."""
    if held.ending:
        await asyncio.shield(held.ending)


def _reap(pid: int) -> None:
    """Collect a dead supervisor: it is our child only where we stand in for init."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


@contextlib.contextmanager
def _exit_of(spawned: Spawned) -> Iterator[asyncio.Future[None]]:
    """Yield a future that is done when the supervisor is gone; at once when its pid names another process by now."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not gone.done():
            gone.set_result(None)

    def look() -> None:
        if not ending.supervisor_of(spawned):
            end()
        elif not gone.cancelled():
            loop.call_later(LOOK_S, look)

    pidfd = _pidfd(spawned.pid)
    try:
        if pidfd < 0:
            look()
        elif ending.supervisor_of(spawned):
            loop.add_reader(pidfd, end)
        else:
            end()
        yield gone
    finally:
        gone.cancel()  # ends the looking
        if pidfd >= 0:
            loop.remove_reader(pidfd)
            os.close(pidfd)


def _pidfd(pid: int) -> int:
    """Return a descriptor that is readable when the process is gone, -1 where there is none and one has to look."""
    if sys.platform == "darwin":
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError:  # gone, or a kernel or a filter that knows no such call
        return -1
