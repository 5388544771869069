"""The envelope and the codec between a record and its line. Pure: hashing included, files not."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Union

import msgspec

from pieria.core.events import TABLE
from pieria.core.events.row import Event, Row
from pieria.core.values import OpId

TAIL_BYTES = 44
"""Length of `,"hash":"<32 hex>"}` and the newline: a line's hash covers everything before it."""
FIRST_PREV = "0" * 32


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A fact to be recorded: the log adds sequence, time and chain. Openers get their own op from the log."""

    agent: str
    event: Event
    op: OpId | None = None
    cause: int | None = None
    basis: int | None = None


class Record(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    """One record: envelope and data. Subclasses, made from the event table, type `data`."""

    seq: int
    prev: str
    durable: int
    epoch: int
    time: str
    agent: str
    n: int
    v: int
    data: msgspec.Struct
    op: OpId | None = None
    cause: int | None = None
    basis: int | None = None
    hash: str = ""


class UnknownData(msgspec.Struct, frozen=True, gc=False):
    """Data of a type or version that this program does not know, as raw JSON."""

    type: str
    raw: msgspec.Raw


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """A record read without knowing its type."""

    seq: int
    prev: str
    durable: int
    epoch: int
    time: str
    agent: str
    n: int
    type: str
    v: int
    data: msgspec.Raw
    op: OpId | None = None
    cause: int | None = None
    basis: int | None = None
    hash: str = ""


def _record_class(row: Row) -> type[Record]:
    made = msgspec.defstruct(
        row.cls.__name__ + "Record",
        [("data", row.cls)],
        bases=(Record,),
        frozen=True,
        gc=False,
        tag_field="type",
        tag=row.name,
        kw_only=True,
    )
    assert issubclass(made, Record)
    return made


ROWS: dict[str, Row] = {row.name: row for row in TABLE}
ROW_OF: dict[type[Event], Row] = {row.cls: row for row in TABLE}
CLASSES: dict[type[Event], type[Record]] = {row.cls: _record_class(row) for row in TABLE}
_VERSIONS: dict[type[Record], int] = {CLASSES[row.cls]: row.v for row in TABLE}
_ENVELOPE = msgspec.json.Decoder(Envelope)
_ENCODE = msgspec.json.Encoder().encode


@cache
def _decoder() -> msgspec.json.Decoder[Record]:
    """One decoder for all types. Making it costs milliseconds that a new session need not spend."""
    return msgspec.json.Decoder(Union[tuple(CLASSES.values())])  # noqa: UP007  (made at run time)


class BadLine(ValueError):
    """A line that is no sound record; the text says what is wrong with it."""


def encode(draft: Draft, *, seq: int, prev: str, durable: int, epoch: int, time: str, n: int) -> tuple[Record, bytes]:
    """Return the record and its line, newline included. Pure: every varying thing is an argument."""
    row = ROW_OF[type(draft.event)]
    op = OpId(f"{draft.agent}.{n}") if row.opens and draft.op is None else draft.op
    head = (
        f'{{"seq":{seq},"prev":"{prev}","durable":{durable},"epoch":{epoch},"time":"{time}",'
        f'"agent":"{draft.agent}","n":{n},"type":"{row.name}","v":{row.v},'
    )
    if op is not None:
        head += f'"op":"{op}",'
    if draft.cause is not None:
        head += f'"cause":{draft.cause},'
    if draft.basis is not None:
        head += f'"basis":{draft.basis},'
    body = b"".join((head.encode(), b'"data":', _ENCODE(draft.event)))
    digest = chain_hash(body)
    record = CLASSES[row.cls](
        seq=seq, prev=prev, durable=durable, epoch=epoch, time=time, agent=draft.agent, n=n, v=row.v,
        data=draft.event, op=op, cause=draft.cause, basis=draft.basis, hash=digest,
    )  # fmt: skip
    return record, b"".join((body, b',"hash":"', digest.encode(), b'"}\n'))


def chain_hash(body: bytes) -> str:
    """The hash of a line's bytes before its last TAIL_BYTES: 32 hex digits of sha256."""
    return sha256(body).hexdigest()[:32]


def decode(line: bytes) -> Record:
    """Parse one line with its newline, typed by the event table. Raises BadLine.

    A type or version that is not in the table comes back with UnknownData: whoever opens the log decides what then.
    """
    if chain_hash(line[:-TAIL_BYTES]) != line[-TAIL_BYTES + 9 : -3].decode("ascii", "replace"):
        raise BadLine("the line does not match its hash")
    try:
        record = _decoder().decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        return _decode_unknown(line, problem)
    if record.v != _VERSIONS[type(record)]:
        return _decode_unknown(line, BadLine(f"version {record.v} is not known"))
    return record


def _decode_unknown(line: bytes, problem: Exception) -> Record:
    try:
        found = _ENVELOPE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadLine(str(problem)) from problem
    if found.type in ROWS and found.v == ROWS[found.type].v:
        raise BadLine(f"{found.type}: {problem}")
    return Record(
        seq=found.seq, prev=found.prev, durable=found.durable, epoch=found.epoch, time=found.time, agent=found.agent,
        n=found.n, v=found.v, data=UnknownData(found.type, found.data), op=found.op, cause=found.cause,
        basis=found.basis, hash=found.hash,
    )  # fmt: skip


def type_name(record: Record) -> str:
    """The dotted kind of a record."""
    data = record.data
    if isinstance(data, UnknownData):
        return data.type
    assert isinstance(data, Event)
    return ROW_OF[type(data)].name


def is_ignorable(record: Record) -> bool:
    """Whether an unknown record may be skipped: its kind begins with `x.`."""
    return isinstance(record.data, UnknownData) and record.data.type.startswith("x.")


def unchained(event: bytes) -> Record:
    """Parse an event that stands outside of any log: no prev, durable or hash. Raises BadLine."""
    try:
        record = _decoder().decode(b'{"prev":"","durable":-1,' + event.lstrip()[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise BadLine(str(problem)) from problem
    return record
