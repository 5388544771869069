"""Decide what to start now, from the state alone. Empty means that something outside is awaited, or all is done."""

from __future__ import annotations

from pieria.core import timers, turn
from pieria.core.effects import CallModel, Effect
from pieria.core.state import State


def decide(state: State) -> tuple[Effect, ...]:
    """Return the effects to start, capped as if all of them did. May be called any number of times."""
    effects = list(timers.decide(state))
    over, left = timers.is_over(state), timers.steps_left(state)
    for id, agent in state.agents.items():
        for effect in turn.decide(state, id, agent):
            if isinstance(effect, CallModel):
                if over or (left == 0 and effect.attempt == 1):
                    continue
                if left is not None and effect.attempt == 1:  # another attempt belongs to a step already counted
                    left -= 1
            effects.append(effect)
    return tuple(effects)
