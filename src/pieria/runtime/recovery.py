"""Recovery at opening: every operation that a dead process left open goes on or is closed, by its row of the table."""

from __future__ import annotations

import asyncio
from functools import partial

from pieria.core.events.calls import ToolInterrupted
from pieria.core.events.files import FilesChanged
from pieria.core.record import Draft
from pieria.core.state import CallState, State
from pieria.core.values import SESSION, AgentId, OpId
from pieria.runtime import outcomes
from pieria.runtime.loop import Loop
from pieria.runtime.perform import Outcome

MOST_NAMED = 100


async def recover(loop: Loop) -> None:
    """Close or take up what is open. Idempotent: a crash in here leaves the same or fewer open operations."""
    await _tell_drift(loop)
    await asyncio.to_thread(loop.performer.forget_others, _running_jobs(loop.state))
    for id, agent in list(loop.state.agents.items()):
        turn = agent.turn
        if turn is None:
            continue
        if turn.step is not None and turn.step.phase == "open":
            loop.writer.append(outcomes.lost(id, turn.step.op, "crash", turn.step.partial))
        for entry in turn.calls:
            if entry.phase == "running" and entry.op is not None:
                loop.launch(id, entry.op, partial(_take_up, loop, id, entry, entry.op))
    for timer in list(loop.state.timers.values()):
        wait = partial(loop.performer.wait_until, timer.agent, timer.op, timer.deadline)
        loop.launch(timer.agent, timer.op, wait)
    loop.settle()


async def _tell_drift(loop: Loop) -> None:
    known = _known(loop.state)
    changed = await asyncio.to_thread(loop.performer.drift, known)
    if changed:
        files, more = changed[:MOST_NAMED], max(0, len(changed) - MOST_NAMED)
        loop.writer.append([Draft(SESSION, FilesChanged(files, more))])


def _running_jobs(state: State) -> set[str]:
    """Jobs of commands whose end is not recorded. What else lies beside the log nobody will ask for again."""
    calls = [entry for agent in state.agents.values() if agent.turn for entry in agent.turn.calls]
    return {entry.spawned.job for entry in calls if entry.phase == "running" and entry.spawned is not None}


def _known(state: State) -> dict[str, str]:
    """Last known hashes of all agents, without files that an unfinished edit may be changing."""
    known: dict[str, str] = {}
    busy: set[str] = set()
    for agent in state.agents.values():
        known.update(agent.known)
        for entry in agent.turn.calls if agent.turn else ():
            if entry.facts is not None and entry.phase == "running":
                busy.update(change.path for change in entry.facts.changes)
    return {path: sha256 for path, sha256 in known.items() if path not in busy}


async def _take_up(loop: Loop, id: AgentId, entry: CallState, op: OpId) -> Outcome:
    """Reads run again, edits go forward or back by hashes, commands are collected, re-attached, or unknown."""
    tools = loop.tools_of(id)
    agent = loop.state.agents[id]
    if entry.call.name not in tools or entry.facts is None:
        text = f"Interrupted by a restart, and the tool '{entry.call.name}' is not here any more: effect unknown."
        return [Draft(id, ToolInterrupted(entry.call.id, "unknown", text), op=op)]
    if entry.facts.access != "shell":
        return await loop.performer.use_tool(id, agent, entry, tools, again=True)
    if entry.spawned is not None:
        ended = await loop.performer.collect(entry)
        if not ended.never_ran:
            return loop.performer.command_ended(id, op, entry, tools[entry.call.name], ended)
    if agent.stop is not None:
        return [Draft(id, ToolInterrupted(entry.call.id, "stopped", "Never begun: the person interrupted."), op=op)]
    prepared = loop.performer.respawn(id, entry, tools)
    records = await loop.writer.insist(prepared.intents)
    if records:
        await loop.writer.durable(records[-1].seq)
        if entry.spawned is not None:
            loop.performer.forget(entry.spawned.job)
    return await prepared.start(op)
