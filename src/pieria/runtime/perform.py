"""Perform effects: the only place that calls ports. Prepares intents, runs effects, words their outcomes as facts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from pieria.core import clock
from pieria.core.context import head_spec
from pieria.core.effects import CallModel, SetTimer, StartTool
from pieria.core.events.calls import CallExamined, ToolFinished, ToolInterrupted, ToolSpawned, ToolStarted
from pieria.core.events.model import StepStarted
from pieria.core.events.turns import TimerFired, TimerSet
from pieria.core.markers import named_secrets
from pieria.core.ports import Ended, FileProblem, Files, Place, Progress, Spawned, Tool
from pieria.core.record import Draft
from pieria.core.state import Agent, CallState, State
from pieria.core.values import AgentId, Call, Change, Details, Examined, FileHash, OpId, ToolResult
from pieria.runtime.arguments import fitted
from pieria.runtime.outcomes import answered, masked_facts, masked_result
from pieria.runtime.requests import Bodies, latest, next_request, same_request
from pieria.runtime.world import World

PARTIAL_BYTES = 2048
PARTIAL_EVERY_S = 1.0
UNTOLD = (
    "The call can't be used as it is. Its text holds a secret, so the reason is left out: read the place again, or try "
    "without the secret to see it."
)

Outcome = list[Draft]
Tools = Mapping[str, Tool]
Partial = Callable[[str], None]


class Prepared(msgspec.Struct):
    """An effect ready to be recorded: its intents, what to do once they are durable, and how to take it back."""

    agent: AgentId
    intents: list[Draft]
    start: Callable[[OpId], Awaitable[Outcome]]
    cancel: Callable[[], None] = lambda: None


class Performer:
    """Performs effects against one world. Holds no state of the session: everything comes with the effect."""

    def __init__(
        self,
        world: World,
        bodies: Bodies,
        *,
        partial: Callable[[AgentId, OpId, str], None],
        progress: Progress,
    ) -> None:
        self._world = world
        self._bodies = bodies
        self._partial = partial
        self._progress = progress
        self._tools: dict[AgentId, Mapping[str, Tool]] = {}
        self._models: dict[AgentId, Any] = {}

    # --- model calls ---------------------------------------------------------------------------------------------

    def call_model(self, state: State, effect: CallModel) -> Prepared:
        """Encode the request and build its intent; sending waits for the barrier."""
        agent = state.agents[effect.agent]
        encoder = latest(self._world.encoders, agent.added.protocol)
        body = self._bodies.of(effect.agent)
        before = body.position()
        if effect.attempt > 1:
            request = same_request(agent, body, encoder)
        else:
            request = next_request(state, agent, body, encoder, self._world.texts)
        spec = head_spec(agent)
        turn = agent.turn
        spans = (f"turn:{effect.agent}.{turn.seq}",) if turn else ()
        intent = StepStarted(request, effect.attempt, effect.purpose, spec.model, spec.sampling, spans)

        async def start(op: OpId) -> Outcome:
            return await self._stream(effect.agent, op, agent, body.bytes(encoder.tail))

        basis = Draft(effect.agent, intent, basis=state.seq)
        return Prepared(effect.agent, [basis], start, lambda: body.roll_back(before))

    async def _stream(self, id: AgentId, op: OpId, agent: Agent, body: bytes) -> Outcome:
        model = self._models.get(id)
        if model is None:
            model = self._models[id] = self._world.model(agent.added)
        loop = asyncio.get_running_loop()
        began = loop.time()
        unsaved: list[str] = []
        saved_at = began
        held = ""

        def on_text(text: str, *, last: bool = False) -> None:
            """Show and save masked text; an end with which a value may have begun is held back."""
            nonlocal saved_at, held
            held = self._world.secrets.mask(held + text)
            cut = len(held) if last else len(held) - self._world.begun_secret(held)
            text, held = held[:cut], held[cut:]
            if not text:
                return
            unsaved.append(text)
            self._progress(id, text)
            if sum(map(len, unsaved)) >= PARTIAL_BYTES or loop.time() - saved_at >= PARTIAL_EVERY_S:
                self._partial(id, op, "".join(unsaved))
                unsaved.clear()
                saved_at = loop.time()

        loop.call_soon(self._world.stand_by)  # runs once the request is written: the stream waits for its answer then
        answer = await model.stream(body, on_text)
        on_text("", last=True)
        duration_ms = round((loop.time() - began) * 1000)
        return [Draft(id, answered(op, answer, duration_ms, self._world.secrets), op=op)]

    # --- tool calls ----------------------------------------------------------------------------------------------

    def tools_of(self, id: AgentId, known: Callable[[str], str | None]) -> Mapping[str, Tool]:
        """The agent's tools by name, made once."""
        if id not in self._tools:
            self._tools[id] = self._world.tools(id, known)
        return self._tools[id]

    def examine(self, id: AgentId, agent: Agent, entry: CallState, tools: Mapping[str, Tool]) -> Draft:
        """Look at a call and say what it would do. Blocking for as long as reading the files takes."""
        return Draft(id, CallExamined(entry.call.id, _facts_of(self._world, agent, entry.call, tools)))

    def start_tool(self, state: State, effect: StartTool, entry: CallState, tools: Mapping[str, Tool]) -> Prepared:
        """Build the intent of a call; a command's supervisor is spawned now and waits for the word to go."""
        assert entry.facts is not None
        tool = tools[entry.call.name]
        intent = ToolStarted(
            effect.call,
            entry.call.name,
            tool.spec.version,
            entry.examined,
            effect.ruling,
            contained=False if entry.facts.access == "shell" else None,
        )
        draft = Draft(effect.agent, intent)
        if entry.facts.access == "shell":
            return self._prepare_command(effect.agent, entry, tool, draft)
        agent = state.agents[effect.agent]

        async def start(op: OpId) -> Outcome:
            return await self.use_tool(effect.agent, agent, replace(entry, op=op), tools)

        return Prepared(effect.agent, [draft], start)

    def _prepare_command(self, id: AgentId, entry: CallState, tool: Tool, draft: Draft | None) -> Prepared:
        facts = entry.facts
        assert facts is not None
        began = [] if draft is None else [draft]
        job = str(entry.call.id) if entry.spawned is None else f"{entry.spawned.job}-again"
        command = self._world.texts.text(facts.command)
        if facts.secrets:  # and no other: what was not named was not asked about
            command = self._world.secrets.reveal(command)
        self._world.before_command()
        try:
            spawned = self._world.processes.spawn(job, command, cwd=facts.cwd, timeout_s=facts.timeout_s)
        except OSError as problem:
            text = f"The command could not be started: {problem.strerror or problem}."

            async def fail(op: OpId) -> Outcome:
                return [Draft(id, ToolFinished(entry.call.id, text, error=True), op=op)]

            return Prepared(id, began, fail)
        fact = ToolSpawned(entry.call.id, spawned.pid, spawned.start_time, spawned.boot_id, spawned.job)

        async def start(op: OpId) -> Outcome:
            self._world.processes.go(job)
            return self.command_ended(id, op, entry, tool, await self._world.processes.wait(spawned))

        return Prepared(id, [*began, Draft(id, fact)], start, lambda: self._world.processes.abandon(job))

    def respawn(self, id: AgentId, entry: CallState, tools: Mapping[str, Tool]) -> Prepared:
        """Prepare a command again that provably never ran: a new supervisor under the same operation."""
        return self._prepare_command(id, entry, tools[entry.call.name], None)

    def forget(self, job: str) -> None:
        """Drop what a command left beside the log: its result is durable."""
        self._world.processes.forget(job)

    def forget_others(self, kept: Collection[str]) -> None:
        """Drop what commands of dead processes left beside the log, but for those whose end is still to be told."""
        self._world.processes.forget_others(kept)

    async def collect(self, entry: CallState) -> Ended:
        """Attach to a command of a dead process, or collect what it left."""
        spawned = entry.spawned
        assert spawned is not None
        return await self._world.processes.wait(Spawned(spawned.pid, spawned.start_time, spawned.boot_id, spawned.job))

    async def stop(self, entry: CallState) -> None:
        """End a running command; its waiter then reports how it ended."""
        if entry.spawned is not None:
            spawned = entry.spawned
            await self._world.processes.stop(Spawned(spawned.pid, spawned.start_time, spawned.boot_id, spawned.job))

    def command_ended(self, id: AgentId, op: OpId, entry: CallState, tool: Tool, ended: Ended) -> Outcome:
        """Word how a command ended: finished, or interrupted with what is known of it."""
        assert entry.facts is not None
        result = masked_result(tool.ended(entry.facts, ended), self._world.texts, self._world.secrets)
        if ended.unknown or ended.stopped:
            reason = "unknown" if ended.unknown else "stopped"
            return [Draft(id, ToolInterrupted(entry.call.id, reason, result.text), op=op)]
        return [Draft(id, ToolFinished(entry.call.id, result.text, result.error, result.details), op=op)]

    async def use_tool(
        self, id: AgentId, agent: Agent, entry: CallState, tools: Mapping[str, Tool], *, again: bool = False
    ) -> Outcome:
        """Run a read, a note or an edit. `again`: a dead process may have begun it."""
        facts, op = entry.facts, entry.op
        assert facts is not None
        assert op is not None
        tool = tools[entry.call.name]
        if facts.access == "edit":
            result = await asyncio.to_thread(self._edit, op, tool, facts, again=again)
        else:
            result = await asyncio.to_thread(self._read, agent, tool, entry.call, facts)
        result = masked_result(result, self._world.texts, self._world.secrets)
        return [Draft(id, ToolFinished(entry.call.id, result.text, result.error, result.details), op=op)]

    def _read(self, agent: Agent, tool: Tool, call: Call, facts: Examined) -> ToolResult:
        asked = fitted(self._world, call, tool)
        assert not isinstance(asked, str)
        return tool.run(facts, asked.arguments, _place(agent, self._world))

    def _edit(self, op: OpId, tool: Tool, facts: Examined, *, again: bool) -> ToolResult:
        texts, secrets = self._world.texts, self._world.secrets

        def real(change: Change) -> Change:
            pre = None if change.pre is None else secrets.reveal(texts.text(change.pre))
            post = None if change.post is None else secrets.reveal(texts.text(change.post))
            return replace(change, pre=pre, post=post)

        changes = [real(change) for change in facts.changes]
        for change in changes:
            if change.post is not None and _hash(str(change.post)) != change.post_sha256:
                return ToolResult(
                    f"Not changed: {change.path} holds a secret or its marker, which can't be put back.", error=True,
                    details=Details(conflict=True),
                )  # fmt: skip
        begin = self._world.files.recover if again else self._world.files.apply
        applied = begin(op, changes)
        if again and applied.status == "none":
            applied = self._world.files.apply(op, changes)
        words = replace(facts, diff=texts.text(facts.diff), note=texts.text(facts.note))
        result = tool.applied(words, applied)
        if applied.files:
            result = replace(result, details=replace(result.details, files=applied.files))
        return result

    # --- timers, files -------------------------------------------------------------------------------------------

    def set_timer(self, state: State, effect: SetTimer) -> Prepared:
        """Record a deadline, then wait for it."""

        async def start(op: OpId) -> Outcome:
            return await self.wait_until(effect.agent, op, effect.deadline)

        return Prepared(effect.agent, [Draft(effect.agent, TimerSet(effect.purpose, effect.deadline))], start)

    async def wait_until(self, id: AgentId, op: OpId, deadline: str) -> Outcome:
        """Wait for an absolute time by the live clock, in short sleeps so that a suspended machine is noticed."""
        while (left := clock.seconds_between(self._world.now(), deadline)) > 0:  # noqa: ASYNC110  (time, not an event)
            await asyncio.sleep(min(left, 10.0))
        return [Draft(id, TimerFired(late=left < -1.0), op=op)]

    def drift(self, known: Mapping[str, str]) -> tuple[FileHash, ...]:
        """Files whose content is no longer the known one. One that can't be read counts as gone."""
        return tuple(
            FileHash(path, now)
            for path, sha256_known in known.items()
            if (now := _hash_of(self._world.files, path)) != sha256_known
        )

    async def close(self) -> None:
        """Drop connections to models, and what stands by."""
        self._world.let_go()
        for model in self._models.values():
            await model.close()


async def guarded(work: Awaitable[Outcome], on_fault: Callable[[BaseException], Outcome]) -> Outcome:
    """Run an effect to its outcome, whatever breaks: one failing effect never takes the session down."""
    try:
        return await work
    except asyncio.CancelledError:
        raise
    except Exception as problem:
        return on_fault(problem)


def _facts_of(world: World, agent: Agent, call: Call, tools: Mapping[str, Tool]) -> Examined:
    tool = tools.get(call.name)
    if tool is None:
        near = world.nearest(call.name, sorted(tools))
        hint = f" Did you mean '{near}'?" if near else ""
        return _unusable(f"There is no tool '{call.name}'.{hint} Tools: {', '.join(sorted(tools))}.")
    try:
        asked = fitted(world, call, tool)
        if isinstance(asked, str):
            return _unusable(world.secrets.mask(asked))
        facts = tool.examine(asked.arguments, _place(agent, world))
        if any(world.secrets.mask(path.real) != path.real for path in facts.paths):
            return _unusable("A path can't hold the value of a secret: it would stand in the log.")
        if asked.secrets and facts.error:  # words cut out of an argument may hold a part of a value
            facts = replace(facts, error=UNTOLD)
        masked = masked_facts(facts, world.texts, world.secrets)
        used = dict.fromkeys((*asked.secrets, *named_secrets(world.texts.text(masked.command))))
        return replace(masked, secrets=tuple(used))
    except FileProblem as problem:
        return _unusable(world.secrets.mask(str(problem)))
    except Exception as problem:  # a fault in a tool must close its call, not the session
        return _unusable(world.secrets.mask(f"The tool '{call.name}' failed while looking at the call: {problem!r}"))


def _unusable(error: str) -> Examined:
    return Examined("note", "", error=error)


def _place(agent: Agent, world: World) -> Place:
    return Place(agent.added.root, world.add_dirs)


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _hash_of(files: Files, path: str) -> str | None:
    try:
        return files.hash(path)
    except FileProblem:
        return None
