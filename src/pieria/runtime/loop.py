"""The loop: accept, append, fold, decide, perform, and round again. One writer; state only ever follows the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from pieria.core.commands import Command, Rejected, accept
from pieria.core.decide import decide
from pieria.core.effects import CallModel, Effect, Examine, SetTimer, StartTool, Stop, Write
from pieria.core.errors import PieriaError
from pieria.core.events.model import StepPartial
from pieria.core.events.session import BlobStored
from pieria.core.fold import fold
from pieria.core.record import Draft, Record
from pieria.core.state import CallState, State
from pieria.core.values import AgentId, CallId, OpId
from pieria.core.view import is_resting
from pieria.runtime import perform
from pieria.runtime.perform import Outcome, Performer, Prepared
from pieria.runtime.requests import Bodies
from pieria.runtime.world import World

MOST_ROUNDS = 10_000
RETRY_WRITE_S = 0.5


class Loop:
    """One session at work. Everything happens on one asyncio loop; effects run as one asyncio job each."""

    def __init__(
        self, world: World, state: State, bodies: Bodies, *,
        on_record: Callable[[Record], None] = lambda record: None,
        on_progress: Callable[[AgentId, str], None] = lambda agent, text: None,
        on_pause: Callable[[PieriaError], None] = lambda problem: None,
    ) -> None:  # fmt: skip
        self.state = state
        self.log = world.log
        self.performer = Performer(world, bodies, partial=self._partial, progress=on_progress)
        self._on_record = on_record
        self._on_pause = on_pause
        self._running: dict[OpId, asyncio.Task[None]] = {}
        self._examining: dict[CallId, asyncio.Task[None]] = {}
        self._stopping: dict[OpId, str] = {}
        self._backlog: list[Outcome] = []
        self._unwritable: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    # --- writing -------------------------------------------------------------------------------------------------

    def append(self, drafts: Sequence[Draft], *, outcome: bool = False) -> tuple[Record, ...]:
        """Record facts and fold them at once. Raises PieriaError when the log can't be written; nothing has changed then."""
        records = self.log.append(drafts, outcome=outcome)
        for record in records:
            self.state = fold(self.state, record)
            self._on_record(record)
        self._changed.set()
        return tuple(record for record in records if not isinstance(record.data, BlobStored))

    async def submit(self, command: Command) -> Record | Rejected:
        """Take a command: durable when this returns. Waits while the log can't be written; the command is not lost."""
        draft = accept(self.state, command)
        if isinstance(draft, Rejected):
            return draft
        while (record := self._try_append(draft)) is None:
            await asyncio.sleep(RETRY_WRITE_S)
        self.settle()
        await self.log.synced(record.seq)
        return record

    def _try_append(self, draft: Draft) -> Record | None:
        try:
            return self.append([draft])[0]
        except PieriaError as problem:
            self._pause(problem)
            return None

    def _pause(self, problem: PieriaError) -> None:
        self._on_pause(problem)
        if self._unwritable is None:
            self._unwritable = asyncio.create_task(self._write_again())

    async def _write_again(self) -> None:
        """Try again until the log takes what waits; no new effect begins before."""
        while True:
            await asyncio.sleep(RETRY_WRITE_S)
            try:
                while self._backlog:
                    self.append(self._backlog[0], outcome=True)
                    self._backlog.pop(0)
            except PieriaError as problem:
                self._on_pause(problem)
                continue
            self._unwritable = None
            self.settle()
            return

    # --- deciding ------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Start everything that the state calls for, until it calls for nothing more."""
        for _ in range(MOST_ROUNDS):
            if self._unwritable is not None:
                return
            effects = [effect for effect in decide(self.state) if not self._underway(effect)]
            if not effects:
                self._changed.set()
                return
            prepared = [self._prepare(effect) for effect in effects]
            begun = [entry for entry in prepared if entry is not None]
            try:
                records = (
                    self.append([intent for entry in begun for intent in entry.intents]) if begun else ()
                )
            except PieriaError as problem:
                for entry in begun:
                    entry.cancel()
                self._pause(problem)
                return
            self._start(begun, records)
        raise AssertionError("decide never came to rest")

    def _underway(self, effect: Effect) -> bool:
        match effect:
            case Examine():
                return effect.call in self._examining
            case Stop():
                return effect.op in self._stopping
            case _:
                return False

    def _prepare(self, effect: Effect) -> Prepared | None:
        match effect:
            case Write(draft=draft):
                return Prepared(AgentId(draft.agent), [draft], _nothing)
            case CallModel():
                return self.performer.call_model(self.state, effect)
            case StartTool():
                return self.performer.start_tool(
                    self.state, effect, self._entry(effect.agent, effect.call), self.tools_of(effect.agent)
                )
            case SetTimer():
                return self.performer.set_timer(self.state, effect)
            case Examine():
                return self._examine(effect)
            case Stop():
                self._stop(effect)
                return None

    def _start(self, begun: Sequence[Prepared], records: Sequence[Record]) -> None:
        position = 0
        for entry in begun:
            mine = records[position : position + len(entry.intents)]
            position += len(entry.intents)
            if entry.start is not _nothing:
                op = mine[0].op
                assert op is not None
                self.run(entry.agent, op, self._after_barrier(entry, op, mine[-1].seq))

    async def _after_barrier(self, entry: Prepared, op: OpId, seq: int) -> Outcome:
        await self.log.synced(seq)
        return await entry.start(op, seq)

    # --- effects in flight ---------------------------------------------------------------------------------------

    def run(self, id: AgentId, op: OpId, work: Coroutine[object, object, Outcome]) -> None:
        """Run an effect under its own guard; its outcome is appended when it ends."""
        self._running[op] = asyncio.create_task(self._run(id, op, work))

    async def _run(self, id: AgentId, op: OpId, work: Coroutine[object, object, Outcome]) -> None:
        def fault(problem: BaseException) -> Outcome:
            return perform.failed(self.state.agents.get(id), id, op, problem)

        try:
            outcome = await perform.guarded(work, fault)
        except asyncio.CancelledError:
            reason = self._stopping.get(op)
            if reason is None:
                raise
            outcome = perform.lost(id, op, reason, self._partial_of(id))
        self._running.pop(op, None)
        self._stopping.pop(op, None)
        self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        if self._unwritable is not None:
            self._backlog.append(outcome)
            return
        try:
            self.append(outcome, outcome=True)
        except PieriaError as problem:
            self._backlog.append(outcome)
            self._pause(problem)
            return
        self.settle()

    def _examine(self, effect: Examine) -> Prepared | None:
        """Look at a call now, or beside the loop when it may have to read much."""
        agent = self.state.agents[effect.agent]
        entry = self._entry(effect.agent, effect.call)
        tools = self.tools_of(effect.agent)
        tool = tools.get(entry.call.name)
        if tool is None or tool.spec.access != "edit":
            return Prepared(
                effect.agent, [self.performer.examine(effect.agent, agent, entry, tools)], _nothing
            )

        async def look() -> None:
            draft = await asyncio.to_thread(self.performer.examine, effect.agent, agent, entry, tools)
            self._examining.pop(effect.call, None)
            current = self._entry(effect.agent, effect.call)
            self._finish([draft] if current.phase == "asked" else [])

        self._examining[effect.call] = asyncio.create_task(look())
        return None

    def _stop(self, effect: Stop) -> None:
        self._stopping[effect.op] = effect.reason
        agent = self.state.agents[effect.agent]
        entry = (
            next((call for call in agent.turn.calls if call.op == effect.op), None) if agent.turn else None
        )
        if entry is not None:
            self._examining[CallId(f"stop {effect.op}")] = asyncio.create_task(
                self._stop_command(effect, entry)
            )
        elif effect.op in self._running:
            self._running[effect.op].cancel()

    async def _stop_command(self, effect: Stop, entry: CallState) -> None:
        await self.log.synced(effect.cause)
        await self.performer.stop(entry)
        self._examining.pop(CallId(f"stop {effect.op}"), None)
        self._changed.set()

    def _partial(self, id: AgentId, op: OpId, text: str) -> None:
        if self._unwritable is None:
            try:
                self.append([Draft(id, StepPartial(text), op=op)])
            except PieriaError as problem:
                self._pause(problem)

    def _partial_of(self, id: AgentId) -> str:
        turn = self.state.agents[id].turn
        return turn.step.partial if turn and turn.step else ""

    # --- looking -------------------------------------------------------------------------------------------------

    def _entry(self, id: AgentId, call: CallId) -> CallState:
        turn = self.state.agents[id].turn
        assert turn is not None
        return next(entry for entry in turn.calls if entry.call.id == call)

    def tools_of(self, id: AgentId) -> perform.Tools:
        """The tools of an agent, which know what it knows of files."""
        return self.performer.tools_of(id, lambda path: self.state.agents[id].known.get(path))

    async def rest(self, until: Callable[[State], bool] = is_resting) -> None:
        """Wait until nothing is in flight and core has nothing to start."""
        while True:
            self._changed.clear()
            busy = self._running.keys() - {
                timer.op for timer in self.state.timers.values() if timer.purpose == "deadline"
            }
            if (
                not busy
                and not self._examining
                and not self._backlog
                and self._unwritable is None
                and until(self.state)
            ):
                return
            await self._changed.wait()

    async def close(self) -> None:
        """End timers and watchers; running commands stay under their supervisors."""
        jobs = [*self._running.values(), *self._examining.values()]
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        await self.performer.close()


async def _nothing(op: OpId, seq: int) -> Outcome:
    return []


Work = Callable[[OpId, int], Awaitable[Outcome]]
