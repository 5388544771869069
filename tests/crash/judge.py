"""What must hold of a session that came to its end, however often it died on its way.

Two sessions of one plan are the same when every agent was sent the same messages, step by step, and the files and the
state at the end are the same. Ids of calls count by their order. What a cut-off or re-attached command said may differ.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from pieria.app.binding import ENCODERS
from pieria.core.events.calls import CallRefused, ToolFinished, ToolInterrupted
from pieria.core.events.model import StepFinished
from pieria.core.record import Record, type_name
from pieria.core.state import State
from pieria.core.values import CallId
from pieria.models.chat import wire_id
from pieria.runtime.replay import replay
from pieria.store.open import read_log
from pieria.store.verify import verify
from tests.crash.machine import Machine
from tests.crash.plans import SECRET


class Differs(AssertionError):
    """A session is not as it must be."""


class Told(msgspec.Struct, frozen=True):
    """One agent's last request, and how many messages each of its requests added."""

    added: tuple[int, ...]
    messages: tuple[str, ...]


class Ended(msgspec.Struct, frozen=True):
    """What is compared.

    `unsure`: per agent the calls, by their order, whose results may differ. `unknown` counts commands with an unknown
    effect, `types` all records.
    """

    told: dict[str, Told]
    state: dict[str, object]
    files: dict[str, tuple[int, bytes]]
    unsure: frozenset[tuple[str, int]]
    unknown: int
    types: Counter[str]
    outcome: str
    ran: dict[str, int]


def end_of(machine: Machine) -> Ended:
    """Check one ended session by itself, and return what is compared with others."""
    records: list[Record] = []
    opened = read_log(machine.log, take=records.append)
    try:
        with open(machine.log, "rb") as file:
            _demand(SECRET.encode() not in file.read(), "the log holds a secret's value")
        report = verify(machine.log)
        _demand(report.ok and not report.torn_bytes, f"verify: {report.gaps} {report.problems} {report.torn_bytes}")
        sent: list = []
        done = replay(records, opened.texts, ENCODERS, keep=sent)
        _demand(done.difference is None, f"replay: {done.difference}")
        closed = _check_calls(records)
        told, order = _told(records, sent)
        state = done.state
        _check_commands(machine, records, order)
        unsure = frozenset(order[call] for call, how in closed.items() if how == "unsure" and call in order)
        unknown = sum(isinstance(each.data, ToolInterrupted) and each.data.reason == "unknown" for each in records)
        return Ended(
            told, _words(state, opened.texts), _files(machine), unsure, unknown,
            Counter(map(type_name, records)), state.closed.outcome if state.closed else "", dict(machine.kernel.ran),
        )  # fmt: skip
    finally:
        import os

        os.close(opened.texts.fd)


def _demand(claim: object, words: str) -> None:
    if not claim:
        raise Differs(words)


def _check_calls(records: list[Record]) -> dict[CallId, str]:
    """Every call that a committed answer asked for is closed exactly once."""
    asked: Counter[CallId] = Counter()
    closed: dict[CallId, str] = {}
    times: Counter[CallId] = Counter()
    for record in records:
        match record.data:
            case StepFinished(calls=calls, stop_reason=reason) if reason != "length":
                asked.update(call.id for call in calls)
            case ToolInterrupted(call=call):
                closed[call] = "unsure"
                times[call] += 1
            case ToolFinished(call=call, details=details):
                closed[call] = "unsure" if details.reattached else "sure"
                times[call] += 1
            case CallRefused(call=call):
                closed[call] = "sure"
                times[call] += 1
    _demand(times == asked, f"calls closed: {times - asked} too often, {asked - times} too seldom")
    return closed


def _told(records: list[Record], sent: list) -> tuple[dict[str, Told], dict[CallId, tuple[str, int]]]:
    attempts = {record.seq: record.data for record in records if type_name(record) == "step.started"}
    bodies: dict[str, bytes] = {}
    added: dict[str, list[int]] = {}
    for entry in sent:
        request = attempts[entry.seq]
        if request.attempt > 1:
            _demand(bodies[entry.agent] == entry.body, f"request {entry.seq} is not the same as the one that was lost")
        else:
            added.setdefault(entry.agent, []).append(len(request.request.add))
        bodies[entry.agent] = entry.body
    ids = {
        (record.agent, wire_id(call.id)): call.id
        for record in records
        if isinstance(record.data, StepFinished)
        for call in record.data.calls
    }
    told: dict[str, Told] = {}
    order: dict[CallId, tuple[str, int]] = {}
    for agent, body in bodies.items():
        numbers: dict[str, int] = {}
        messages = []
        request = msgspec.json.decode(body)
        for message in request["messages"]:
            for call in message.get("tool_calls", ()):
                numbers[call["id"]] = len(numbers)
                call["id"] = f"call {numbers[call['id']]}"
            if "tool_call_id" in message:
                message["tool_call_id"] = f"call {numbers[message['tool_call_id']]}"
            messages.append(msgspec.json.encode(message).decode())
        order |= {ids[agent, id]: (agent, number) for id, number in numbers.items()}
        told[agent] = Told(tuple(added[agent]), tuple(messages))
    return told, order


def _check_commands(machine: Machine, records: list[Record], order: object) -> None:
    """Nothing was begun twice, and what is recorded as ended was begun."""
    _demand(not machine.left(), f"nobody will ask for them, and they lie there: {machine.left()}")
    twice = {command: count for command, count in machine.kernel.ran.items() if count > 1}
    _demand(not twice, f"commands begun more than once: {twice}")
    lines = {}
    for member in machine.plan.members:
        with open(f"{machine.workspace}/{member.folder}/ran.txt", "rb") as file:
            lines[member.id] = Counter(file.read().split(b"\n")[:-1])
    _demand(all(count == 1 for each in lines.values() for count in each.values()), f"lines written twice: {lines}")


def _words(state: State, texts) -> dict[str, object]:
    """The state in words that do not hold numbers of records."""

    def messages(kept) -> list[object]:
        return [(type(each).__name__, texts.text(each.text) if hasattr(each, "text") else "") for each in kept]

    agents = {
        id: {
            "end": (agent.last_end, agent.last_detail),
            "text": texts.text(agent.last_text),
            "known": dict(sorted(agent.known.items())),
            "todo": agent.todo,
            "turns": [turn.flaws for turn in agent.turns],
            "open": (agent.turn, agent.unread, agent.stop),
            "notes": messages(agent.notes),
        }
        for id, agent in state.agents.items()
    }
    timers = [timer.purpose for timer in state.timers.values()]
    counts = state.steps, state.tokens, [[turn.steps for turn in agent.turns] for agent in state.agents.values()]
    return {"agents": agents, "approvals": state.approvals, "timers": timers, "settings": state.settings,
            "counts": counts}  # fmt: skip


def _files(machine: Machine) -> dict[str, tuple[int, bytes]]:
    import os
    import stat

    found = {}
    for folder, _, names in os.walk(machine.workspace):
        for name in names:
            place = f"{folder}/{name}"
            with open(place, "rb") as file:
                found[place] = (stat.S_IMODE(os.stat(place).st_mode), file.read())
    return found


def compare(expected: Ended, found: Ended, *, power: bool) -> None:
    """Both are ends of one plan. `power`: the power was cut, so that commands in flight are unknown."""
    unsure = expected.unsure | found.unsure
    _demand(expected.told.keys() == found.told.keys(), "other agents were asked")
    # A command that the person would have stopped was cut off before: then the model is asked once more, and stopped.
    counts = not (power and found.unknown > expected.unknown)
    for agent, told in expected.told.items():
        other = found.told[agent]
        _demand(
            not counts or told.added == other.added, f"{agent}: messages a request: {told.added} became {other.added}"
        )
        for number, (one, two) in enumerate(zip(told.messages, other.messages, strict=False)):
            _demand(
                one == two or (agent, _call_of(one)) in unsure,
                f"{agent}: message {number} differs:\n{one}\nbecame\n{two}",
            )
    for what, one in expected.state.items():
        two = found.state[what]
        _demand(one == two or (what == "counts" and not counts), f"{what} at the end: {one}\nbecame\n{two}")
    _demand(expected.outcome == found.outcome, f"{expected.outcome} became {found.outcome}")
    _demand(power or found.unknown <= expected.unknown, "a command's effect became unknown")
    for place in expected.files.keys() | found.files.keys():
        one, two = expected.files.get(place), found.files.get(place)
        if one != two and not (place.endswith("/ran.txt") and _as_lines(one) == _as_lines(two)):
            _demand(power and place.endswith("/ran.txt"), f"{place} is {_short(two)}, not {_short(one)}")


def _call_of(message: str) -> int:
    id = msgspec.json.decode(message).get("tool_call_id", "call -1")
    return int(id.removeprefix("call "))


def _as_lines(file: tuple[int, bytes] | None) -> list[bytes]:
    return sorted(file[1].split(b"\n")) if file else []


def _short(file: tuple[int, bytes] | None) -> str:
    return "absent" if file is None else f"{file[0]:o} {file[1][:80]!r} ({len(file[1])} bytes)"
