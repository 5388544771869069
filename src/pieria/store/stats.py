"""Counts what happened in a session, from its log alone. What nobody counted is unknown, never zero."""

from __future__ import annotations

import os

import msgspec

from pieria.core.events.calls import ToolStarted
from pieria.core.events.model import StepFailed, StepFinished, StepLost, StepStarted
from pieria.core.events.session import SessionClosed
from pieria.core.events.turns import TurnStarted
from pieria.core.record import Record
from pieria.store.open import opened_file
from pieria.store.scan import Scan


class Tokens(msgspec.Struct):
    """Tokens of one agent's finished steps; `unknown_steps` had no count, lost attempts are not in it."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    unknown_steps: int = 0


class Stats(msgspec.Struct):
    """Figures of one log. `steps` counts answers, `attempts` model calls begun; what is neither is still open."""

    session: str = ""
    records: int = 0
    bytes: int = 0
    agents: list[str] = []
    turns: int = 0
    steps: int = 0
    attempts: int = 0
    attempts_lost: int = 0
    attempts_failed: int = 0
    tool_calls: dict[str, int] = {}
    tokens: dict[str, Tokens] = {}
    first_time: str = ""
    last_time: str = ""
    epochs: int = 0
    unclean_ends: int = 0
    outcome: str = ""


def stats(path: str) -> Stats:
    """Count over a log's sound records."""
    found = Stats()
    agents: dict[str, None] = {}
    with opened_file(path) as file:
        found.bytes = os.fstat(file.fileno()).st_size
        scan = Scan(file)
        for record in scan.records():
            found.records += 1
            found.first_time = found.first_time or record.time
            found.last_time, found.epochs = record.time, record.epoch
            agents.setdefault(record.agent)
            _count(found, record)
    found.session = scan.header.session if scan.header else ""
    found.unclean_ends = scan.unclean_ends
    found.agents = [agent for agent in agents if agent not in {"person", "session"}]
    return found


def _count(found: Stats, record: Record) -> None:
    match record.data:
        case TurnStarted():
            found.turns += 1
        case StepStarted():
            found.attempts += 1
        case StepLost():
            found.attempts_lost += 1
        case StepFailed():
            found.attempts_failed += 1
        case StepFinished() as step:
            found.steps += 1
            _count_tokens(found.tokens.setdefault(record.agent, Tokens()), step)
        case ToolStarted(tool=tool):
            found.tool_calls[tool] = found.tool_calls.get(tool, 0) + 1
        case SessionClosed(outcome=outcome):
            found.outcome = outcome


def _count_tokens(tokens: Tokens, step: StepFinished) -> None:
    usage = step.usage
    if usage is None or usage.input is None or usage.output is None:
        tokens.unknown_steps += 1
        if usage is None:
            return
    tokens.input += usage.input or 0
    tokens.output += usage.output or 0
    tokens.cached += usage.cached or 0
    tokens.reasoning += usage.reasoning or 0
