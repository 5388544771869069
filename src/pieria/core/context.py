"""What a model is sent: the messages that a request adds, from the state alone. Append-only between rewrite points."""

from __future__ import annotations

from pieria.core.ports import HeadSpec
from pieria.core.state import Agent, State
from pieria.core.turn import next_messages
from pieria.core.values import Message, SystemMessage, Text


def head_spec(agent: Agent) -> HeadSpec:
    """What shapes the fixed start of every request of an agent."""
    added = agent.added
    return HeadSpec(added.model, added.tools, added.sampling, added.cache_key, added.max_output)


def added_messages(state: State, agent: Agent) -> tuple[Message, ...]:
    """The messages that the agent's next request adds to its last one; the first request starts with the system."""
    if agent.last_request is not None:
        return next_messages(agent)
    return (SystemMessage(_system_parts(state, agent)), *next_messages(agent))


def _system_parts(state: State, agent: Agent) -> tuple[Text, ...]:
    if state.project is None:
        return (agent.added.system,)
    instructions: list[Text] = []
    for entry in state.project.instructions:
        instructions += [f"Instructions of this project, from {entry.path}:", entry.text]
    return (agent.added.system, state.project.facts, *instructions)
