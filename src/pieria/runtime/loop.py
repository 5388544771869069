"""The loop: accept, append, fold, decide, perform, and round again. One writer; state only ever follows the log."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial

from pieria.core.commands import Command, Rejected, accept
from pieria.core.decide import decide
from pieria.core.effects import CallModel, Effect, Examine, SetTimer, StartTool, Stop, Write
from pieria.core.errors import PieriaError
from pieria.core.events.model import StepPartial
from pieria.core.fold import fold
from pieria.core.ports import Progress
from pieria.core.record import Draft, Record
from pieria.core.state import CallState, State, call_of, partial_text, running_call
from pieria.core.values import AgentId, CallId, OpId
from pieria.core.view import idle_timers, is_resting
from pieria.runtime import outcomes, perform
from pieria.runtime.perform import Outcome, Performer, Prepared
from pieria.runtime.requests import Bodies
from pieria.runtime.world import World

MOST_ROUNDS = 10_000
RETRY_WRITE_S = 0.5
PATIENCE_S = 600.0
"""How long a disk may refuse before the program ends: nothing acknowledged is lost by that."""
TIDY_AFTER_S = 0.02


class Writer:
    """The only hand that appends. When the disk refuses, outcomes wait here and nothing new begins."""

    def __init__(
        self,
        world: World,
        state: State,
        *,
        on_record: Callable[[Record], None],
        on_pause: Callable[[PieriaError], None],
    ) -> None:
        self.log = world.log
        self.mend = world.mend
        self.state = state
        self.changed = asyncio.Event()
        self.on_written: Callable[[], None] = lambda: None
        self._on_record = on_record
        self._on_pause = on_pause
        self.given_up: PieriaError | None = None
        self._backlog: list[Outcome] = []
        self._waiting: asyncio.Task[None] | None = None
        self._told = ""

    @property
    def is_paused(self) -> bool:
        """Whether the log can't be written now."""
        return self._waiting is not None

    def append(self, drafts: Sequence[Draft], *, outcome: bool = False) -> tuple[Record, ...]:
        """Record facts and fold them at once. Raises PieriaError when the disk refuses; nothing has changed then."""
        records = self.log.append(drafts, outcome=outcome)
        for record in records:
            self.take(record)
        self.changed.set()
        return records

    def take(self, record: Record) -> None:
        """Fold a written record. The log hands over those that it adds by itself: contents and marks."""
        self.state = fold(self.state, record)
        self._on_record(record)

    def configure(self, drafts: Sequence[Draft]) -> tuple[Record, ...]:
        """Record what the program that opened the session composed: openings, settings, roster, its end."""
        return self.append(drafts)

    async def submit(self, propose: Callable[[], Draft | Rejected]) -> Record | Rejected:
        """Record a person's fact, waiting while the disk refuses: what they said is not lost.

        `propose` is asked anew at each try: what could be accepted before may have been settled meanwhile.
        """
        while True:
            draft = propose()
            if isinstance(draft, Rejected):
                return draft
            try:
                return self.append([draft])[0]
            except PieriaError as problem:
                self.pause(problem)
            await asyncio.sleep(RETRY_WRITE_S)

    async def insist(self, drafts: Sequence[Draft]) -> tuple[Record, ...]:
        """Record intents, waiting while the disk refuses."""
        while True:
            try:
                return self.append(drafts)
            except PieriaError as problem:
                self.pause(problem)
            await asyncio.sleep(RETRY_WRITE_S)

    async def durable(self, seq: int) -> None:
        """Return when a record is durable, waiting out a disk that fails. Raises PieriaError when it never recovers."""
        while True:
            try:
                return await self.log.synced(seq)
            except PieriaError as problem:
                self.pause(problem)
            await asyncio.sleep(RETRY_WRITE_S)

    def close(self, outcome: Outcome) -> bool:
        """Record how an effect ended, now or as soon as the disk takes it. Returns whether it is written."""
        if self._waiting is None:
            try:
                self.append(outcome, outcome=True)
            except PieriaError as problem:
                self.pause(problem)
            else:
                return True
        self._backlog.append(outcome)
        return False

    def pause(self, problem: PieriaError) -> None:
        """Say why nothing can be written, and try again until it can. Raises it when that lasts too long."""
        if self.given_up is not None:
            raise self.given_up
        self._tell(problem)
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._try_again())

    async def _try_again(self) -> None:
        tries = 0
        while True:
            await asyncio.sleep(RETRY_WRITE_S)
            try:
                await self.mend()
                while self._backlog:
                    self.append(self._backlog[0], outcome=True)
                    self._backlog.pop(0)
            except PieriaError as problem:
                self._tell(problem)
                tries += 1
                if tries * RETRY_WRITE_S >= PATIENCE_S:
                    self.given_up = problem
                    self.changed.set()
                    return
                continue
            self._waiting, self._told = None, ""
            self.on_written()
            return

    def _tell(self, problem: PieriaError) -> None:
        """Say it once: figures of a later try are no news, another reason is."""
        reason = f"{problem}".partition("\n")[0]
        if reason != self._told:
            self._told = reason
            self._on_pause(problem)

    def stop(self) -> None:
        """Try no more to write what waits: the process ends, and the next one closes what is open."""
        if self._waiting is not None:
            self._waiting.cancel()


class Loop:
    """One session at work. Everything happens on one asyncio loop; each effect runs as one asyncio job of its own."""

    def __init__(
        self, world: World, state: State, bodies: Bodies, *,
        on_record: Callable[[Record], None], on_progress: Progress, on_pause: Callable[[PieriaError], None],
    ) -> None:  # fmt: skip
        self.log = world.log
        self.writer = Writer(world, state, on_record=on_record, on_pause=on_pause)
        self.writer.on_written = self.settle
        self.performer = Performer(world, bodies, partial=self._partial, progress=on_progress)
        self._running: dict[OpId, asyncio.Task[None]] = {}
        self._looking: dict[CallId, asyncio.Task[None]] = {}
        self._stopping: dict[OpId, str] = {}
        self._spent: deque[tuple[int, str]] = deque()
        self._broken: BaseException | None = None

    @property
    def state(self) -> State:
        """The state after everything written so far."""
        return self.writer.state

    async def submit(self, command: Command) -> Record | Rejected:
        """Take a command: durable when this returns."""
        record = await self.writer.submit(lambda: accept(self.state, command))
        if isinstance(record, Rejected):
            return record
        self.settle()
        await self.writer.durable(record.seq)
        return record

    # --- deciding ------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Start everything that the state calls for, until it calls for nothing more."""
        for _ in range(MOST_ROUNDS):
            if self.writer.is_paused:
                return
            effects = [effect for effect in decide(self.state) if not self._underway(effect)]
            if not effects:
                self.writer.changed.set()
                return
            prepared = [self._prepare(effect) for effect in effects]
            begun = [entry for entry in prepared if entry is not None]
            try:
                records = self.writer.append([intent for entry in begun for intent in entry.intents]) if begun else ()
            except PieriaError as problem:
                for entry in begun:
                    entry.cancel()
                self.writer.pause(problem)
                return
            self._start(begun, records)
        raise AssertionError("decide never came to rest")

    def _underway(self, effect: Effect) -> bool:
        match effect:
            case Examine():
                return effect.call in self._looking
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
                    self.state, effect, call_of(self.state, effect.agent, effect.call), self.tools_of(effect.agent)
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
            op = mine[0].op
            if entry.start is not _nothing:
                assert op is not None
                self.launch(entry.agent, op, partial(self._after_barrier, entry, op, mine[-1].seq))
            elif op in self._running:  # a timer that no longer matters was closed by core itself
                self._running.pop(op).cancel()

    async def _after_barrier(self, entry: Prepared, op: OpId, seq: int) -> Outcome:
        await self.writer.durable(seq)
        return await entry.start(op)

    # --- effects in flight ---------------------------------------------------------------------------------------

    def launch(self, id: AgentId, op: OpId, work: Callable[[], Awaitable[Outcome]]) -> None:
        """Run an effect under its own guard; its outcome is appended when it ends."""
        self._running[op] = self._watched(self._carry(id, op, work))

    def _watched(self, work: Coroutine[object, object, None], *, look: CallId | None = None) -> asyncio.Task[None]:
        """Start a job whose own breaking down, a mistake of ours, ends the session instead of hanging it."""

        def ended(job: asyncio.Task[None]) -> None:
            if look is not None and self._looking.get(look) is job:
                del self._looking[look]
            if not job.cancelled() and (problem := job.exception()) is not None:
                self._broken = self._broken or problem
            self.writer.changed.set()

        job = asyncio.create_task(work)
        job.add_done_callback(ended)
        return job

    async def _carry(self, id: AgentId, op: OpId, work: Callable[[], Awaitable[Outcome]]) -> None:
        def fault(problem: BaseException) -> Outcome:
            return outcomes.failed(self.state.agents.get(id), id, op, problem)

        try:
            outcome = await perform.guarded(work(), fault)
        except asyncio.CancelledError:
            reason = self._stopping.get(op)
            if reason is None:
                raise
            outcome = outcomes.lost(id, op, reason, partial_text(self.state, id))
        self._running.pop(op, None)
        self._stopping.pop(op, None)
        entry = running_call(self.state, id, op)
        if self.writer.close(outcome):
            if entry is not None and entry.spawned is not None:
                self._spent.append((self.state.seq, entry.spawned.job))
            self.settle()

    def tidy(self, _durable: int) -> None:
        """Remove what commands left beside the log, once results are durable; not while a turn waits for us."""
        if self._spent and self._spent[0][0] <= self.log.durable:
            asyncio.get_running_loop().call_later(TIDY_AFTER_S, self._forget_spent)

    def _forget_spent(self) -> None:
        while self._spent and self._spent[0][0] <= self.log.durable:
            self.performer.forget(self._spent.popleft()[1])

    def _examine(self, effect: Examine) -> Prepared | None:
        """Look at a call now, or beside the loop when it may have to read much."""
        agent = self.state.agents[effect.agent]
        entry = call_of(self.state, effect.agent, effect.call)
        tools = self.tools_of(effect.agent)
        tool = tools.get(entry.call.name)
        if tool is None or tool.spec.access != "edit":
            return Prepared(effect.agent, [self.performer.examine(effect.agent, agent, entry, tools)], _nothing)

        async def look() -> None:
            draft = await asyncio.to_thread(self.performer.examine, effect.agent, agent, entry, tools)
            self._looking.pop(effect.call, None)
            turn = self.state.agents[effect.agent].turn
            waits = turn is not None and any(c.call.id == effect.call and c.phase == "asked" for c in turn.calls)
            if self.writer.close([draft] if waits else []):
                self.settle()

        self._looking[effect.call] = self._watched(look(), look=effect.call)
        return None

    def _stop(self, effect: Stop) -> None:
        self._stopping[effect.op] = effect.reason
        entry = running_call(self.state, effect.agent, effect.op)
        if entry is not None:
            stopping = CallId(f"stop {effect.op}")
            self._looking[stopping] = self._watched(self._stop_command(effect, entry), look=stopping)
        elif effect.op in self._running:
            # Not at once: a job that is cancelled before its first step never tells how it ended.
            asyncio.get_running_loop().call_soon(self._running[effect.op].cancel)

    async def _stop_command(self, effect: Stop, entry: CallState) -> None:
        await self.writer.durable(effect.cause)
        await self.performer.stop(entry)

    def _partial(self, id: AgentId, op: OpId, text: str) -> None:
        if not self.writer.is_paused:
            try:
                self.writer.append([Draft(id, StepPartial(text), op=op)])
            except PieriaError as problem:
                self.writer.pause(problem)

    # --- looking -------------------------------------------------------------------------------------------------

    def tools_of(self, id: AgentId) -> perform.Tools:
        """The tools of an agent, which know what it knows of files."""
        return self.performer.tools_of(id, lambda path: self.state.agents[id].known.get(path))  # noqa: PLW0108  (late)

    async def rest(self, until: Callable[[State], bool] = is_resting) -> None:
        """Wait until nothing is in flight and core has nothing to start. Raises what broke a job of ours."""
        while True:
            self.writer.changed.clear()
            if (broken := self._broken or self.writer.given_up) is not None:
                raise broken
            busy = self._looking or self._running.keys() - idle_timers(self.state)
            if not busy and not self.writer.is_paused and until(self.state):
                return
            await self.writer.changed.wait()

    async def close(self) -> None:
        """End timers and watchers; running commands stay under their supervisors."""
        jobs = [*self._running.values(), *self._looking.values()]
        for job in jobs:
            job.cancel()
        self.writer.stop()
        await asyncio.gather(*jobs, return_exceptions=True)
        self._forget_spent()
        await self.performer.close()


async def _nothing(_op: OpId) -> Outcome:
    return []
