"""Timers and caps: waits that survive a restart, and limits for the whole team."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from pieria.core.effects import Effect, SetTimer, Write
from pieria.core.events.turns import TimerFired, TimerSet
from pieria.core.record import Draft, Record
from pieria.core.state import State, StopRequest, Timer, with_agent
from pieria.core.values import SESSION, AgentId, OpId


def _set(state: State, record: Record, data: TimerSet) -> State:
    if record.op is None:
        return state
    timer = Timer(record.op, AgentId(record.agent), data.purpose, data.deadline)
    state = replace(state, timers={**state.timers, record.op: timer})
    agent = state.agents.get(timer.agent)
    if agent is None or agent.turn is None:
        return state
    return with_agent(state, timer.agent, replace(agent, turn=replace(agent.turn, timer=timer.op)))


def _fired(state: State, record: Record, data: TimerFired) -> State:
    timer = state.timers.get(record.op) if record.op else None
    if timer is None:
        return state
    state = replace(state, timers={op: entry for op, entry in state.timers.items() if op != timer.op})
    if timer.purpose == "deadline":
        return _time_is_up(state, record.seq) if timer.deadline == state.settings.deadline else state
    agent = state.agents.get(timer.agent)
    if agent is None or agent.turn is None or agent.turn.timer != timer.op:
        return state
    step = agent.turn.step if agent.turn.step is None else replace(agent.turn.step, wait_s=0.0)
    return with_agent(state, timer.agent, replace(agent, turn=replace(agent.turn, timer=None, step=step)))


def _time_is_up(state: State, seq: int) -> State:
    for id, agent in state.agents.items():
        if agent.turn is not None and agent.stop is None:
            state = with_agent(state, id, replace(agent, stop=StopRequest(seq, "capped")))
    return replace(state, out_of_time=True)


FOLDS: dict[type, Callable[[State, Record, Any], State]] = {TimerSet: _set, TimerFired: _fired}


def decide(state: State) -> tuple[Effect, ...]:
    """Keep exactly one timer for this run's deadline; end those of earlier runs."""
    effects: list[Effect] = []
    current: OpId | None = None
    for timer in state.timers.values():
        if timer.purpose != "deadline":
            continue
        if timer.deadline == state.settings.deadline and current is None:
            current = timer.op
        else:
            effects.append(Write(Draft(timer.agent, TimerFired(), op=timer.op)))
    if state.settings.deadline and current is None and not state.out_of_time:
        effects.append(SetTimer(SESSION, "deadline", state.settings.deadline))
    return tuple(effects)


def is_over(state: State) -> bool:
    """Whether this run's time or tokens are used up: then no model call begins, not even another attempt."""
    tokens = state.settings.max_tokens
    return state.out_of_time or (tokens is not None and state.tokens - state.tokens_before >= tokens)


def steps_left(state: State) -> int | None:
    """How many steps may still begin under this run's caps; None means any number."""
    if is_over(state):
        return 0
    steps = state.settings.max_steps
    return None if steps is None else max(0, steps - (state.steps - state.steps_before))
