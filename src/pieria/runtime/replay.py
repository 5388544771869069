"""Replay: rebuild every request from the records alone and compare it byte for byte with what was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from pieria.core.events.model import StepStarted
from pieria.core.fold import fold
from pieria.core.ports import Texts
from pieria.core.record import Record
from pieria.core.state import State
from pieria.runtime.requests import Body, Encoders, extend, next_request


class Difference(msgspec.Struct, frozen=True):
    """The first place where a rebuilt request differs from the recorded one."""

    seq: int
    agent: str
    what: str
    at: int = -1
    recorded: bytes = b""
    rebuilt: bytes = b""


class Replayed(msgspec.Struct, frozen=True):
    """What a replay saw. `not_rerun` counts requests whose encoder version is no longer shipped."""

    records: int
    requests: int
    not_rerun: int
    digest: str
    state: State
    difference: Difference | None = None


class Sent(msgspec.Struct, frozen=True):
    """One rebuilt request."""

    seq: int
    agent: str
    body: bytes


class _Lines(msgspec.Struct):
    """Per agent: the body by recorded fragments, and the body by derivation from state."""

    recorded: Body
    derived: Body
    tail: str = ""


def replay(
    records: Iterable[Record],
    texts: Texts,
    encoders: Encoders,
    *,
    to: int | None = None,
    keep: list[Sent] | None = None,
) -> Replayed:
    """Fold all records (up to `to`), rebuilding each request both ways; stop at the first difference."""
    state = State()
    lines: dict[str, _Lines] = {}
    count = requests = not_rerun = 0
    digest = sha256()
    for record in records:
        if to is not None and record.seq > to:
            break
        if isinstance(record.data, StepStarted):
            requests += 1
            line = lines.setdefault(record.agent, _Lines(Body(), Body()))
            found, rerun = _check(state, record, record.data, line, texts, encoders)
            not_rerun += not rerun
            if found is not None:
                return Replayed(count, requests, not_rerun, digest.hexdigest(), state, found)
            digest.update(record.data.request.sha256.encode())
            if keep is not None:
                keep.append(Sent(record.seq, record.agent, line.recorded.bytes(line.tail)))
        state = fold(state, record)
        count += 1
    return Replayed(count, requests, not_rerun, digest.hexdigest(), state)


def _check(
    state: State, record: Record, data: StepStarted, line: _Lines, texts: Texts, encoders: Encoders
) -> tuple[Difference | None, bool]:
    request = data.request
    extend(line.recorded, request, texts)
    tail = line.tail = line.tail if request.tail is None else request.tail
    if line.recorded.seal(tail) != (request.sha256, request.len):
        return Difference(record.seq, record.agent, "the recorded fragments do not give the recorded hash"), True
    agent = state.agents.get(record.agent)  # type: ignore[call-overload]
    if agent is None:
        return Difference(record.seq, record.agent, "the agent is not in the roster"), True
    encoder = encoders.get((agent.added.protocol, request.encoder))
    if encoder is None:
        line.derived.data[:] = line.recorded.data
        return None, False
    if data.attempt == 1:
        next_request(state, agent, line.derived, encoder, texts)
    if line.derived.seal(encoder.tail) == (request.sha256, request.len):
        return None, True
    recorded, rebuilt = line.recorded.bytes(tail), line.derived.bytes(encoder.tail)
    at = first_difference(recorded, rebuilt)
    return (
        Difference(
            record.seq, record.agent, "the request rebuilt from state differs", at,
            recorded[max(0, at - 40) : at + 40], rebuilt[max(0, at - 40) : at + 40],
        ),
        True,
    )  # fmt: skip


def first_difference(one: bytes, other: bytes) -> int:
    """The first index at which two byte strings differ."""
    for i, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return i
    return min(len(one), len(other))
