"""Ports in memory, bound into a world: a log that can refuse, a model that waits for its answers, three tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from pieria.core import clock
from pieria.core.commands import Configure
from pieria.core.errors import PieriaError
from pieria.core.events.session import AgentAdded, SettingsApplied
from pieria.core.ports import Answer, AnswerCall, Ended, Place, Spawned
from pieria.core.record import FIRST_PREV, Draft, Record, encode
from pieria.core.state import State
from pieria.core.values import Access, AgentId, Examined, ToolResult, ToolSpec, TouchedPath
from pieria.runtime.loop import Loop
from pieria.runtime.requests import Bodies
from pieria.runtime.world import World

START = "2026-01-01T00:00:00.000000Z"
ROOT = "/home/ada/app"


class MemoryLog:
    """A log of records; `refuses` makes it say that the disk is full."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.refuses = False
        self.time = START

    @property
    def durable(self) -> int:
        return len(self.records) - 1

    def append(self, drafts: Sequence[Draft], *, outcome: bool = False) -> tuple[Record, ...]:
        if self.refuses:
            raise PieriaError("the disk is full")
        return tuple([self._append(draft) for draft in drafts])

    def _append(self, draft: Draft) -> Record:
        n = sum(record.agent == draft.agent for record in self.records)
        record, _ = encode(draft, seq=len(self.records), prev=FIRST_PREV, durable=0, epoch=1, time=self.time, n=n)
        self.records.append(record)
        return record

    async def synced(self, seq: int) -> None:
        await asyncio.sleep(0)

    def of(self, op: str | None) -> list[str]:
        """The names of the records of one operation."""
        return [type(record.data).__name__ for record in self.records if record.op == op]

    def names(self) -> list[str]:
        return [type(record.data).__name__ for record in self.records]


class Plain:
    """Texts and secrets where everything is inline and nothing is secret."""

    def __init__(self) -> None:
        self.is_broken = False

    def text(self, ref) -> str:
        if self.is_broken:
            raise OSError(5, "Input/output error")
        return str(ref)

    def data(self, ref) -> bytes:
        return self.text(ref).encode()

    def mask(self, text: str) -> str:
        return text

    def reveal(self, text: str) -> str:
        return text


class Wire:
    """An encoder that writes nothing but the words."""

    version = 1
    tail = "]"

    def head(self, spec) -> str:
        return "["

    def fragment(self, message) -> str:
        return repr(message)


class AskedModel:
    """A model whose answers a test puts in; until then it thinks."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[object] = asyncio.Queue()
        self.bodies: list[bytes] = []

    async def stream(self, body: bytes, on_text: Callable[[str], None]):
        self.bodies.append(body)
        return await self.answers.get()

    async def close(self) -> None:
        return

    def says(self, text: str = "", *tools: str) -> None:
        self.answers.put_nowait(Answer(text, tuple(AnswerCall(name, "{}") for name in tools)))


class Known:
    """A tool whose looks and results are fixed."""

    def __init__(self, name: str, access: Access) -> None:
        self.spec = ToolSpec(name, 1, access, "", "{}")
        self.gate: Callable[[], None] = lambda: None

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        self.gate()
        paths = (TouchedPath("a", f"{ROOT}/a", inside=True),) if self.spec.access != "shell" else ()
        return Examined(self.spec.access, self.spec.name, paths=paths, command="make", words=("make",), cwd=ROOT)

    def run(self, facts: Examined, arguments: Mapping[str, object], place: Place) -> ToolResult:
        return ToolResult("content")

    def ended(self, facts: Examined, outcome: Ended) -> ToolResult:
        return ToolResult("stopped" if outcome.stopped else "output")


class Commands:
    """Commands that run until they are stopped or let go. `ran` holds those that were told to go."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.ends: dict[str, asyncio.Future[Ended]] = {}
        self.breaks_on_stop = False

    def spawn(self, job: str, command: str, *, cwd: str, timeout_s: float) -> Spawned:
        self.ends[job] = asyncio.get_running_loop().create_future()
        return Spawned(7, 7, "boot", job)

    def go(self, job: str) -> None:
        self.ran.append(job)

    async def wait(self, spawned: Spawned) -> Ended:
        if spawned.job not in self.ends:
            return Ended(None, never_ran=True)
        return await self.ends[spawned.job]

    async def stop(self, spawned: Spawned) -> None:
        if spawned.job in self.ends:
            self.ends[spawned.job].set_result(Ended(None, stopped=True))
        if self.breaks_on_stop:
            raise ProcessLookupError(3, "No such process")

    def forget(self, job: str) -> None:
        return

    def forget_others(self, kept: Collection[str]) -> None:
        return


class NoFiles:
    def hash(self, real: str) -> str | None:
        return None


class Bench:
    """A loop with all its ports at hand."""

    def __init__(self, mode: str = "full", *, state: State | None = None, log: MemoryLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.texts, self.model, self.commands = Plain(), AskedModel(), Commands()
        self.tools = {"read": Known("read", "read"), "edit": Known("edit", "edit"), "shell": Known("shell", "shell")}
        self.pauses: list[PieriaError] = []

        async def mend() -> None:
            return

        world = World(
            log=self.log, mend=mend, texts=self.texts, files=NoFiles(), processes=self.commands, secrets=self.texts,
            encoders={("script", 1): Wire()}, model=lambda added: self.model, tools=lambda agent, known: self.tools,
            parse=lambda raw, schema: {}, nearest=lambda name, names: "", now=lambda: self.log.time,
        )  # fmt: skip
        self.loop = Loop(
            world, state or State(), Bodies(self.texts), on_record=lambda record: None,
            on_progress=lambda agent, text: None, on_pause=self.pauses.append,
        )  # fmt: skip
        if state is None:
            agent = AgentAdded(AgentId("lead"), "lead", "script", "m", "s", (), ROOT)
            self.loop.writer.configure([Draft("session", SettingsApplied(mode)), Draft("session", agent)])

    async def until(self, is_so: Callable[[State], bool]) -> None:
        """Let everybody else go on until it is so."""
        async with asyncio.timeout(5):
            while not is_so(self.loop.state):  # noqa: ASYNC110  (anything may make it so, not one event)
                await asyncio.sleep(0)

    async def rest(self) -> None:
        async with asyncio.timeout(5):
            await self.loop.rest()

    async def settle_to(self, deadline: str) -> None:
        await self.loop.submit(Configure(SettingsApplied("full", deadline=deadline)))

    @property
    def turn(self):
        return self.loop.state.agents[AgentId("lead")].turn


LATER = clock.later(START, 3600.0)
