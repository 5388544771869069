"""Commands without processes: what a kernel and its shells would have done, as values that can be kept and put back.

Invariant: towards the runtime it behaves as `pieria.workspace.processes.Commands` does (a suite plays the same cases on
both); what was told to go outlives the process that told it, what was not told dies with it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from pieria.core.ports import Ended, Spawned
from tests.crash.life import Life

BLOCKS = "sleep 1000"
SIDE_BYTES = 16 * 1024


class Job(msgspec.Struct, frozen=True):
    """One command. `at` counts the parts of it that were done."""

    command: str
    cwd: str
    pid: int
    boot: int
    phase: str = "gated"
    at: int = 0
    out: bytes = b""
    code: int | None = None
    began: bool = False
    stopped: bool = False


class Held(msgspec.Struct, frozen=True):
    """Everything that a kernel knows, to be put back later."""

    jobs: dict[str, Job]
    ran: dict[str, int]
    boot: int
    next_pid: int


class Kernel:
    """The processes of a machine. `ran` counts how often each command was begun, ever."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.ran: dict[str, int] = {}
        self.boot = 1
        self.next_pid = 100
        self.on_file: Callable[[str], object] = lambda _: None

    def held(self) -> Held:
        return Held(dict(self.jobs), dict(self.ran), self.boot, self.next_pid)

    def put_back(self, held: Held) -> None:
        self.jobs, self.ran = dict(held.jobs), dict(held.ran)
        self.boot, self.next_pid = held.boot, held.next_pid

    def parent_died(self) -> None:
        """The gates of commands that were not told to go are closed: they never run."""
        for name, job in self.jobs.items():
            if job.phase == "gated":
                self.jobs[name] = replace(job, phase="ended")

    def reboot(self) -> None:
        """Nothing survives a power cut but what is on disk."""
        for name, job in self.jobs.items():
            if job.phase in ("gated", "running"):
                self.jobs[name] = replace(job, phase="ended")
        self.boot += 1

    def blocks(self, name: str) -> bool:
        """Whether a command waits for something that never comes."""
        job = self.jobs.get(name)
        return job is not None and job.phase == "running" and _parts(job)[job.at : job.at + 1] == [BLOCKS]

    def finish(self) -> None:
        """Let every command that runs come to its end, as time would."""
        for name in self.jobs:
            while self.jobs[name].phase == "running" and not self.blocks(name):
                self.advance(name)

    def advance(self, name: str) -> None:
        """Do the next part of a running command."""
        job = self.jobs[name]
        parts = _parts(job)
        if not job.began:
            self.ran[job.command] = self.ran.get(job.command, 0) + 1
            job = replace(job, began=True)
        if job.at >= len(parts):
            self.jobs[name] = replace(job, phase="ended", code=0)
            return
        done = self._part(replace(job, at=job.at + 1), parts[job.at])
        if done.at >= len(parts) and done.code is None:
            done = replace(done, phase="ended", code=0)
        self.jobs[name] = done

    def _part(self, job: Job, part: str) -> Job:
        words, _, path = part.partition(" >>")
        verb, _, rest = words.partition(" ")
        match verb:
            case "echo" if path:
                place = os.path.join(job.cwd, path)
                with open(place, "ab") as file:
                    file.write(rest.encode() + b"\n")
                self.on_file(place)
                return job
            case "echo":
                return replace(job, out=job.out + rest.encode() + b"\n")
            case "seq":
                first, last = map(int, rest.split())
                return replace(job, out=job.out + b"".join(b"%d\n" % i for i in range(first, last + 1)))
            case "exit":
                return replace(job, phase="ended", code=int(rest))
        raise AssertionError(f"the kernel knows no such command: {part}")


def _parts(job: Job) -> list[str]:
    return job.command.split("; ")


class SimulatedCommands:
    """The `Processes` port of one life."""

    def __init__(self, kernel: Kernel, life: Life) -> None:
        self._kernel = kernel
        self._life = life
        self._mine: set[str] = set()

    def spawn(self, job: str, command: str, *, cwd: str, timeout_s: float) -> Spawned:
        def do() -> Spawned:
            kernel = self._kernel
            if not os.path.isdir(cwd):
                raise FileNotFoundError(f"no such folder to run in: {cwd}")
            if job in kernel.jobs and kernel.jobs[job].began:
                raise FileExistsError(f"there is a job {job} already")
            kernel.next_pid += 1
            kernel.jobs[job] = Job(command, cwd, kernel.next_pid, kernel.boot)
            self._mine.add(job)
            return Spawned(kernel.next_pid, 1, f"boot-{kernel.boot}", job)

        return self._life.step(f"spawn {job}", do)

    def go(self, job: str) -> None:
        def do() -> None:
            found = self._kernel.jobs.get(job)
            if job in self._mine and found and found.phase == "gated":
                self._kernel.jobs[job] = replace(found, phase="running")

        self._life.covered(f"job {job}", f"the word to go for {job}")
        self._life.step(f"go {job}", do)

    def abandon(self, job: str) -> None:
        def do() -> None:
            if job in self._mine:
                self._mine.discard(job)
                del self._kernel.jobs[job]

        self._life.step(f"abandon {job}", do)

    def forget(self, job: str) -> None:
        self._life.step(f"forget {job}", lambda: self._kernel.jobs.pop(job, None))

    def forget_others(self, kept: Collection[str]) -> None:
        for job in [job for job in self._kernel.jobs if job not in kept and job not in self._mine]:
            self._life.step(f"forget {job}", lambda job=job: self._kernel.jobs.pop(job))

    async def wait(self, spawned: Spawned) -> Ended:
        kernel, name = self._kernel, spawned.job
        same_boot = spawned.boot_id == f"boot-{kernel.boot}"
        while same_boot and name in kernel.jobs and kernel.jobs[name].phase in ("gated", "running"):
            await asyncio.sleep(0)
            if kernel.jobs[name].phase == "running" and not kernel.blocks(name):
                self._life.step(f"command {name}", lambda: kernel.advance(name))
            elif kernel.jobs[name].phase != "ended":
                self._life.wake()
                await asyncio.sleep(0.05)
        job = kernel.jobs.get(name)
        if job is None:
            return Ended(None, output_sha256=sha256().hexdigest(), unknown=True, reattached=name not in self._mine)
        if not job.began and same_boot and job.code is None:
            return Ended(None, never_ran=True, reattached=name not in self._mine)
        return Ended(
            job.code,
            head=job.out[:SIDE_BYTES],
            tail=job.out[SIDE_BYTES:][-SIDE_BYTES:],
            output_bytes=len(job.out),
            output_sha256=sha256(job.out).hexdigest(),
            signal="SIGTERM" if job.code == 143 else "",
            stopped=job.stopped,
            unknown=job.code is None,
            reattached=name not in self._mine,
        )

    async def stop(self, spawned: Spawned) -> None:
        def do() -> None:
            job = self._kernel.jobs.get(spawned.job)
            if job and job.phase == "gated":
                self._kernel.jobs[spawned.job] = replace(job, phase="ended", stopped=True)
            elif job and job.phase == "running":
                self._kernel.jobs[spawned.job] = replace(job, phase="ended", stopped=True, code=143)

        if spawned.boot_id == f"boot-{self._kernel.boot}":
            self._life.step(f"stop {spawned.job}", do)
        await asyncio.sleep(0)
