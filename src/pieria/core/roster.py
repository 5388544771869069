"""The session's own facts: birth, openings, settings, place and agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from pieria.core.events.session import (
    AgentAdded,
    BlobStored,
    Mark,
    ProjectObserved,
    SessionClosed,
    SessionCreated,
    SessionOpened,
    SettingsApplied,
)
from pieria.core.leave import leave
from pieria.core.record import Record
from pieria.core.state import Agent, State, with_agent
from pieria.core.values import UserMessage


def _created(state: State, record: Record, data: SessionCreated) -> State:
    return replace(state, session=data)


def _opened(state: State, record: Record, data: SessionOpened) -> State:
    """What was looked at and not ruled on is looked at again: the world may have moved while nobody was here.

    A moved project folder moves every agent's root and what it knows of files, and each is told.
    """
    agents = {id: _looking_again(agent) for id, agent in state.agents.items()}
    state = replace(state, closed=None, agents=agents)
    if not data.moved_to:
        return state
    for id, agent in state.agents.items():
        old, new = agent.added.root, data.moved_to
        known = {_moved(path, old, new): sha256 for path, sha256 in agent.known.items()}
        note = UserMessage(f"The project's folder was moved from {old} to {new}.", label="folder moved")
        moved = replace(agent, added=replace(agent.added, root=new), known=known, notes=(*agent.notes, note))
        state = with_agent(state, id, moved)
    return state


def _looking_again(agent: Agent) -> Agent:
    if agent.turn is None or all(call.phase != "examined" for call in agent.turn.calls):
        return agent
    calls = tuple(replace(call, phase="asked") if call.phase == "examined" else call for call in agent.turn.calls)
    return replace(agent, turn=replace(agent.turn, calls=calls))


def _moved(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if path == old or path.startswith(old.rstrip("/") + "/") else path


def _settings(state: State, record: Record, data: SettingsApplied) -> State:
    """New settings start new counts for caps, wake agents that an earlier cap had stopped, and tell of new leave."""
    words = leave(data)
    told = () if words == leave(state.settings) else (UserMessage(words, label="leave changed"),)
    agents = {
        id: replace(
            agent,
            stop=None if agent.stop and agent.stop.reason == "capped" else agent.stop,
            notes=(*agent.notes, *told),
        )
        for id, agent in state.agents.items()
    }
    return replace(
        state,
        settings=data,
        settings_seq=record.seq,
        agents=agents,
        steps_before=state.steps,
        tokens_before=state.tokens,
        out_of_time=False,
    )


def _added(state: State, record: Record, data: AgentAdded) -> State:
    return state if data.id in state.agents else with_agent(state, data.id, Agent(data))


def _observed(state: State, record: Record, data: ProjectObserved) -> State:
    return replace(state, project=data)


def _closed(state: State, record: Record, data: SessionClosed) -> State:
    return replace(state, closed=data)


def _nothing(state: State, record: Record, data: object) -> State:
    return state


FOLDS: dict[type, Callable[[State, Record, Any], State]] = {
    SessionCreated: _created,
    SessionOpened: _opened,
    SettingsApplied: _settings,
    AgentAdded: _added,
    ProjectObserved: _observed,
    SessionClosed: _closed,
    Mark: _nothing,
    BlobStored: _nothing,
}
