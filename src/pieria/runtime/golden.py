"""Golden files: the events that matter for requests, and the bytes of every request, with no chain and no log.

A golden file holds none of the recorded fragments: replaying it derives each request from the events anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from pieria.core.errors import LogCorrupt
from pieria.core.events.calls import CallExamined
from pieria.core.events.model import StepPartial, StepStarted
from pieria.core.events.session import BlobStored, Mark
from pieria.core.fold import fold
from pieria.core.ports import Texts
from pieria.core.record import BadLine, Record, type_name, unchained
from pieria.core.state import State
from pieria.core.values import Blob, Examined, Text
from pieria.runtime.replay import Difference, Replayed, Sent, first_difference
from pieria.runtime.requests import Body, Encoders, next_request

VERSION = 1
LEFT_OUT = (StepPartial, Mark, BlobStored)


class Request(msgspec.Struct, frozen=True):
    """The bytes that were sent at `seq`."""

    seq: int
    agent: str
    body: str


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a golden file: the header, an event, a text that events cite by sha256, or a request."""

    golden: int = 0
    event: msgspec.Raw = msgspec.Raw()
    sha256: str = ""
    text: str = ""
    request: Request | None = None


def write_golden(records: Iterable[Record], texts: Texts, sent: Iterable[Sent]) -> Iterator[bytes]:
    """Return the lines of a golden file. The same log gives the same bytes."""
    encode = msgspec.json.Encoder().encode
    bodies = {entry.seq: entry for entry in sent}
    cited: set[str] = set()
    yield encode(Line(golden=VERSION)) + b"\n"
    for record in records:
        if isinstance(record.data, LEFT_OUT):
            continue
        data = _trimmed(record.data)
        for blob in _blobs(data):
            if blob.sha256 not in cited:
                cited.add(blob.sha256)
                yield encode(Line(sha256=blob.sha256, text=texts.text(blob))) + b"\n"
        event = {
            "seq": record.seq, "epoch": record.epoch, "time": record.time, "agent": record.agent, "n": record.n,
            "type": type_name(record), "v": record.v, "data": data,
        }  # fmt: skip
        if record.op is not None:
            event["op"] = record.op
        yield encode(Line(event=msgspec.Raw(encode(event)))) + b"\n"
        if record.seq in bodies:
            entry = bodies[record.seq]
            yield encode(Line(request=Request(entry.seq, entry.agent, entry.body.decode()))) + b"\n"


def _trimmed(data: msgspec.Struct) -> msgspec.Struct:
    """Leave out what no request is made of: recorded fragments, images of files, diffs."""
    if isinstance(data, StepStarted):
        return replace(data, request=replace(data.request, add=(), head=None, tail=None))
    if isinstance(data, CallExamined):
        return replace(data, facts=Examined(data.facts.access, data.facts.action, error=data.facts.error))
    return data


def _blobs(value: object) -> Iterator[Blob]:
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _blobs(getattr(value, name))
    elif isinstance(value, tuple):
        for entry in value:
            yield from _blobs(entry)


class _Cited:
    """Texts of a golden file, by content hash."""

    def __init__(self, by_sha256: Mapping[str, str]) -> None:
        self._by_sha256 = by_sha256

    def text(self, ref: Text) -> str:
        return ref if isinstance(ref, str) else self._by_sha256[ref.sha256]

    def data(self, ref: Text) -> bytes:
        return self.text(ref).encode("utf-8", "surrogateescape")


def replay_golden(lines: Iterable[bytes], encoders: Encoders) -> Replayed:
    """Fold a golden file's events, derive each request anew and compare it with the bytes in the file."""
    decode = msgspec.json.Decoder(Line).decode
    state = State()
    cited: dict[str, str] = {}
    bodies: dict[str, Body] = {}
    waiting: tuple[int, str, Body, str] | None = None
    count = requests = 0
    for number, raw in enumerate(lines, 1):
        try:
            line = decode(raw)
            record = unchained(bytes(line.event)) if bytes(line.event) else None
        except (msgspec.DecodeError, BadLine, UnicodeDecodeError, RecursionError) as problem:
            raise LogCorrupt(f"line {number} of the golden file is damaged: {problem}", "write it anew") from problem
        if line.sha256:
            cited[line.sha256] = line.text
        elif line.request is not None:
            requests += 1
            found = _compare(waiting, line.request)
            if found is not None:
                return Replayed(count, requests, 0, "", state, found)
        elif record is not None:
            if isinstance(record.data, StepStarted):
                waiting = _derive(state, record, record.data, bodies, _Cited(cited), encoders)
            state = fold(state, record)
            count += 1
    return Replayed(count, requests, 0, "", state)


def _derive(
    state: State, record: Record, data: StepStarted, bodies: dict[str, Body], texts: Texts, encoders: Encoders
) -> tuple[int, str, Body, str] | None:
    agent = next((entry for id, entry in state.agents.items() if id == record.agent), None)
    encoder = encoders.get((agent.added.protocol, data.request.encoder)) if agent else None
    if agent is None or encoder is None:
        return None
    body = bodies.setdefault(record.agent, Body())
    if data.attempt == 1:
        next_request(state, agent, body, encoder, texts)
    return record.seq, record.agent, body, encoder.tail


def _compare(derived: tuple[int, str, Body, str] | None, expected: Request) -> Difference | None:
    if derived is None or derived[0] != expected.seq:
        return Difference(expected.seq, expected.agent, "no request can be derived here")
    rebuilt, recorded = derived[2].bytes(derived[3]), expected.body.encode()
    if rebuilt == recorded:
        return None
    at = first_difference(recorded, rebuilt)
    around = slice(max(0, at - 40), at + 40)
    return Difference(
        expected.seq, expected.agent, "the derived request differs", at, recorded[around], rebuilt[around]
    )
