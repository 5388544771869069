"""A machine that can be kept at any step and put back: files, the log, commands, and the server's memory.

One machine stands in one folder; a life uses it through disks and ports that count their calls.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from pieria.app import binding
from pieria.app.session import Ground, Setup, real_world
from pieria.core.events.calls import ToolSpawned, ToolStarted
from pieria.core.events.model import StepStarted
from pieria.core.events.session import AgentAdded, Mark
from pieria.core.ports import Answer, Applied, BrokenStream, Failure, Processes
from pieria.core.record import Record
from pieria.core.values import AgentId, Change, OpId
from pieria.models.exchange import Timeouts
from pieria.models.reading import Reading
from pieria.models.scripted import PlayedReply
from pieria.runtime.world import World
from pieria.store.disk import Disk as StoreDisk
from pieria.store.log import Log
from pieria.workspace.disk import Disk as FilesDisk
from pieria.workspace.files import DiskFiles
from tests.crash.kernel import Held, Kernel, SimulatedCommands
from tests.crash.life import Clock, Halt, Life
from tests.crash.medium import Image, Kept, Medium
from tests.crash.plans import CHANGED, SECRET, Plan

SYNC_S = 0.0003
"""How long a sync takes at least while moments are kept, so that other agents write meanwhile."""


class Moment(msgspec.Struct, frozen=True):
    """A machine after a step. `size`, `synced`: bytes of the log; `durable`: what the process believed."""

    step: str
    size: int
    synced: int
    named: bool
    name_synced: bool
    durable: int
    kernel: Held
    attempts: dict[str, int]
    files: Kept


class Machine:
    """`root` is for this machine alone. `log` is the session's path once it has its name."""

    is_real = False

    def __init__(self, root: str, plan: Plan) -> None:
        self.root = root
        self.plan = plan
        self.workspace = f"{root}/w"
        self.sessions = f"{root}/s"
        self.clock = Clock()
        self.kernel = Kernel()
        self.attempts: dict[str, int] = {}
        self.log = ""
        self.log_file = ""
        self.synced = 0
        self.name_synced = False
        self.moments: list[Moment] | None = None
        self.medium: Medium | None = None
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(self.sessions)
        self._lay_out()

    def _lay_out(self) -> None:
        os.makedirs(self.workspace)
        for name, data in self.plan.files.items():
            place = f"{self.workspace}/{name}"
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(data)
        for name, target in self.plan.links.items():
            os.link(f"{self.workspace}/{target}", f"{self.workspace}/{name}")

    # --- keeping and putting back -----------------------------------------------------------------------------

    def watch(self) -> None:
        """Keep a moment after every step from now on."""
        self.moments = []
        self.medium = Medium(self.workspace)
        self.kernel.on_file = self._on_file

    def _on_file(self, place: str) -> None:
        assert self.medium is not None
        self.medium.look()
        self.medium.settle(place)

    def keep(self, step: str, durable: int) -> None:
        """Keep this moment."""
        if self.moments is None or self.medium is None:
            return
        size = os.path.getsize(self.log_file) if self.log_file else 0
        self.moments.append(
            Moment(
                step, size, self.synced, bool(self.log), self.name_synced, durable,
                self.kernel.held(), dict(self.attempts), self.medium.kept(),
            )
        )  # fmt: skip

    def put_back(self, moment: Moment, log: bytes | None, *, path: str, files: Image | None = None) -> None:
        """Make everything as it was, with this log. None: the session never got its name."""
        self.moments, self.medium = None, None
        self.kernel.on_file = lambda _: None
        (files or moment.files.now).write(self.workspace)
        shutil.rmtree(self.sessions)
        os.makedirs(self.sessions)
        self.log = self.log_file = path if log is not None else ""
        self.synced, self.name_synced = len(log or b""), log is not None
        if log is not None:
            with open(path, "wb") as file:
                file.write(log)
        self.kernel.put_back(moment.kernel)
        self.attempts = dict(moment.attempts)

    def begin_anew(self) -> None:
        """Leave the log of a session that never began."""
        self.log = self.log_file = ""
        self.synced, self.name_synced = 0, False

    # --- what happens while no process runs -------------------------------------------------------------------

    @property
    def was_down(self) -> bool:
        """Whether the change that someone makes while no process runs was made."""
        with open(f"{self.workspace}/known.txt", "rb") as file:
            return file.read() == CHANGED

    def change_file(self) -> None:
        """Someone changes a file that the lead knows."""
        with open(f"{self.workspace}/known.txt", "wb") as file:
            file.write(CHANGED)
        if self.medium is not None:
            self._on_file(f"{self.workspace}/known.txt")

    def commands(self, life: Life, session: str, log: str, setup: Setup) -> Processes:
        """The `Processes` port of one life."""
        return SimulatedCommands(self.kernel, life)

    def left(self) -> list[str]:
        """Jobs of which something lies about."""
        return list(self.kernel.jobs)

    def setup(self) -> Setup:
        return Setup(
            cwd=self.workspace, root=self.workspace, model="scripted:plan", endpoint="scripted:plan",
            settings=self.plan.settings(), secrets={"TOKEN": SECRET}, sessions=self.sessions,
            environ={"PATH": os.environ["PATH"]},
        )  # fmt: skip


def ground(machine: Machine, life: Life) -> Ground:
    """What a session of one life stands on."""

    def world(id: str, log: Log, setup: Setup) -> World:
        life.log = log
        files = CoveredFiles(machine, life)
        return replace_ports(
            real_world(id, log, setup),
            files=files,
            processes=machine.commands(life, id, log.path, setup),
            model=lambda added: PlannedModel(machine, life, added),
            tools=binding.agent_tools(files),
            now=machine.clock.now,
        )

    return Ground(world, LogDisk(machine, life), machine.clock)


def replace_ports(world: World, **ports: object) -> World:
    return replace(world, **ports)


def note(life: Life, record: Record) -> None:
    """Remember under which name an intent will be asked for."""
    match record.data:
        case ToolSpawned(job=job):
            life.intents[f"job {job}"] = record.seq
        case ToolStarted():
            life.intents[f"op {record.op}"] = record.seq
        case StepStarted(request=request):
            life.intents[f"request {request.sha256}"] = record.seq
        case Mark():
            life.marks += 1
        case _:
            pass
    life.wake()


class LogDisk(StoreDisk):
    """The log's disk: counts calls and knows what is durable."""

    def __init__(self, machine: Machine, life: Life) -> None:
        super().__init__()
        self._machine = machine
        self._life = life
        self._up = super()

    def write(self, fd, data):
        def do() -> int:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND:
                self._machine.log_file = os.readlink(f"/proc/self/fd/{fd}")
            return os.write(fd, data)

        return self._do("write", do, half=lambda: os.write(fd, data[: len(data) * 2 // 3]))

    def fdatasync(self, fd):
        # In two steps, since others may write meanwhile: what they write is not covered.
        size = self._do("fdatasync", lambda: os.fstat(fd).st_size)
        if self._machine.moments is not None:
            time.sleep(SYNC_S)

        def do() -> None:
            os.fdatasync(fd)
            self._machine.synced = size

        self._do("fdatasync ends", do)

    def fsync(self, fd):
        def do() -> None:
            os.fsync(fd)
            if os.readlink(f"/proc/self/fd/{fd}") == self._machine.sessions:
                self._machine.name_synced = bool(self._machine.log)

        self._do("fsync", do)

    def ftruncate(self, fd, size):
        self._do("ftruncate", lambda: os.ftruncate(fd, size))

    def rename(self, source, target):
        def do() -> None:
            os.rename(source, target)
            self._machine.log = self._machine.log_file = target

        self._do("rename", do)

    def _do(self, name: str, do: Callable[[], object], *, half: Callable[[], object] | None = None):
        try:
            return self._life.step(f"log {name}", do, half=half)
        except Halt:
            if threading.current_thread().name == "pieria-log":
                return 0  # the thread of a dead process does nothing more, and says nothing
            raise


class CountedFilesDisk(FilesDisk):
    """The workspace's disk: every call that changes something is a step."""

    def __init__(self, machine: Machine, life: Life) -> None:
        self._machine = machine
        self._life = life

    def _do(self, name: str, do: Callable[[], object], *, half: Callable[[], object] | None = None, looks: bool = True):
        def done() -> object:
            result = do()
            if looks and self._machine.medium is not None:
                self._machine.medium.look()
            return result

        return self._life.step(f"files {name}", done, half=half)

    def open(self, path, flags, mode=0o600):
        if not flags & (os.O_CREAT | os.O_TRUNC):
            return super().open(path, flags, mode)
        up = super().open
        return self._do("open", lambda: up(path, flags, mode))

    def write(self, fd, data):
        return self._do("write", lambda: os.write(fd, data), half=lambda: os.write(fd, data[: len(data) // 2]))

    def truncate(self, fd, length):
        self._do("truncate", lambda: os.ftruncate(fd, length))

    def fsync(self, fd):
        def do() -> None:
            os.fsync(fd)
            medium = self._machine.medium
            if medium is None:
                return
            number = medium.number_of(fd)
            if number is not None:
                medium.sync_file(number)
            else:
                medium.sync_folder(os.readlink(f"/proc/self/fd/{fd}"))

        self._do("fsync", do, looks=False)

    def chown(self, fd, uid, gid):
        self._do("chown", lambda: os.fchown(fd, uid, gid))

    def chmod(self, fd, mode):
        self._do("chmod", lambda: os.fchmod(fd, mode))

    def exchange(self, first, second):
        up = super().exchange
        self._do("exchange", lambda: up(first, second))

    def replace(self, source, target):
        self._do("replace", lambda: os.replace(source, target))

    def link(self, source, target):
        up = super().link
        self._do("link", lambda: up(source, target))

    def move(self, source, target):
        up = super().move
        self._do("move", lambda: up(source, target))

    def unlink(self, path):
        self._do("unlink", lambda: os.unlink(path))

    def mkdir(self, path):
        self._do("mkdir", lambda: os.mkdir(path))

    def rmdir(self, path):
        self._do("rmdir", lambda: os.rmdir(path))


class CoveredFiles(DiskFiles):
    """Files on the counted disk; nothing is changed before its intent is durable."""

    def __init__(self, machine: Machine, life: Life) -> None:
        super().__init__(disk=CountedFilesDisk(machine, life))
        self._life = life

    def apply(self, op: OpId, changes: Sequence[Change]) -> Applied:
        if f"op {op}" in self._life.intents:  # else it was opened by an earlier life, and is durable by opening
            self._life.covered(f"op {op}", f"the edit {op}")
        return super().apply(op, changes)


class PlannedModel:
    """An agent's model: plays the plan, read by the code that reads real providers."""

    def __init__(self, machine: Machine, life: Life, added: AgentAdded) -> None:
        self._machine = machine
        self._life = life
        self._id = added.id

    async def stream(self, body: bytes, on_text: Callable[[str], None]) -> Answer | BrokenStream | Failure:
        from hashlib import sha256

        machine, life, plan = self._machine, self._life, self._machine.plan
        life.covered(f"request {sha256(body).hexdigest()}", f"a request of {self._id}")
        played, step, id = life.step(f"send {self._id}", lambda: plan.play(body, machine.attempts))
        life.demand(id == self._id, "an agent's request holds another's prompt")
        match step.gate:
            case "prompt":
                await life.until(lambda: _has_heard(life, id, step.extra))
            case "interrupt":
                await life.until(lambda: False)
            case "mark" if machine.moments is not None:
                seen = life.marks
                await life.until(lambda: life.marks > seen)
        return await Reading(PlayedReply(played), on_text, timeouts=Timeouts(), secret="").outcome()

    async def close(self) -> None:
        """Nothing is open."""


def _has_heard(life: Life, id: str, words: str) -> bool:
    from tests.crash.plans import prompts_of

    return words in prompts_of(life.session.loop.state.agents[AgentId(id)])
