"""Checks all that a log promises: chain, per-agent order, pairing of effects, contents, every request's bytes."""

from __future__ import annotations

import os
from base64 import b64decode
from hashlib import sha256

import msgspec

from pieria.core.errors import LogCorrupt
from pieria.core.events.model import StepStarted
from pieria.core.events.session import FORMAT, MAGIC, BlobStored
from pieria.core.record import ROW_OF, Record, UnknownData, type_name
from pieria.core.values import Text
from pieria.store.blobs import LogTexts
from pieria.store.open import opened_file
from pieria.store.scan import Gap, Scan
from pieria.store.stow import blobs_of


class Report(msgspec.Struct, frozen=True):
    """What a log holds and what is wrong with it. A torn tail is no fault: nothing in it was acknowledged.

    `head` is the last record's hash: kept elsewhere, it proves later that nothing was changed. `types` counts records.
    """

    session: str
    records: int
    bytes: int
    head: str
    types: dict[str, int]
    requests: int
    torn_bytes: int
    gaps: tuple[Gap, ...]
    unknown: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.gaps and not self.problems


def verify(path: str) -> Report:
    """Check a whole log in one pass. Raises PieriaError only when it can't be read at all."""
    types: dict[str, int] = {}
    with opened_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        scan = Scan(file)
        # Its own descriptor: reading a content must not move the scan's place.
        with opened_file(path) as contents:
            texts = LogTexts(contents.fileno(), path, offsets=scan.chain.offsets)
            pairs, blobs, requests = _Pairs(), _Blobs(), _Requests(texts)
            for record in scan.records():
                name = type_name(record)
                types[name] = types.get(name, 0) + 1
                if not isinstance(record.data, UnknownData):
                    pairs.take(record)
                    blobs.take(record)
                    requests.take(record)
    problems = [*_birth(scan), *pairs.problems, *blobs.problems, *requests.problems]
    return Report(
        session=scan.header.session if scan.header else "",
        records=sum(types.values()),
        bytes=size,
        head=scan.chain.prev,
        types=types,
        requests=requests.checked,
        torn_bytes=0 if scan.torn_at is None else size - scan.torn_at,
        gaps=tuple(scan.gaps),
        unknown=tuple(scan.unknown),
        problems=tuple(problems),
    )


def _birth(scan: Scan) -> list[str]:
    """Return what is wrong with record 0. A later format may mean other things by the same records."""
    header = scan.header
    if header is None:
        return [] if scan.gaps else ["record 0 is not the birth of a session"]
    if header.magic != MAGIC:
        return ["record 0 is not the birth of a session of this program"]
    if header.format > FORMAT:
        newer = f"record 0 says format {header.format}, this version knows up to {FORMAT}"
        return [f"{newer}: a newer version wrote the log, so it can't be checked here"]
    return []


class _Pairs:
    """Each effect is opened once, and closed at most once by an event that may close it."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._open: dict[str, str] = {}
        self._seen: set[str] = set()

    def take(self, record: Record) -> None:
        row = ROW_OF[type(record.data)]  # type: ignore[index]
        if not row.opens and not row.closes:
            return
        where, op = f"record {record.seq} ({row.name})", record.op
        if op is None:
            self.problems.append(f"{where} belongs to no effect")
        elif row.opens:
            if op in self._seen:
                self.problems.append(f"{where} opens {op} again")
            self._seen.add(op)
            self._open[op] = row.name
        elif (opener := self._open.get(op)) is None:
            again = "closes {} again" if op in self._seen else "closes {}, which was never opened"
            self.problems.append(f"{where} {again.format(op)}")
        elif opener not in row.closes:
            self.problems.append(f"{where} can't close {op}, a {opener}")
        else:
            del self._open[op]


class _Blobs:
    """Each content has the hash and length it claims, and what is cited is there."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._known: dict[str, tuple[int, int]] = {}
        self._running = sha256()
        self._length = 0
        self._next = (-1, "")

    def take(self, record: Record) -> None:
        data = record.data
        if isinstance(data, BlobStored):
            self._part(record.seq, data)
            return
        for blob in blobs_of(data):
            if self._known.get(blob.sha256) != (blob.seq, blob.len):
                self.problems.append(f"record {record.seq} cites a content that record {blob.seq} doesn't begin")

    def _part(self, seq: int, part: BlobStored) -> None:
        if part.part == 0:
            self._running, self._length = sha256(), 0
        elif self._next != (seq, part.sha256):
            self.problems.append(f"record {seq} is a part that nothing comes before")
            return
        data = b64decode(part.base64) if part.base64 else part.text.encode()
        self._running.update(data)
        self._length += len(data)
        self._next = (seq + 1, part.sha256)
        if part.part != part.parts - 1:
            return
        self._next = (-1, "")
        if self._running.hexdigest() != part.sha256 or self._length != part.len:
            self.problems.append(f"record {seq} ends a content that doesn't have its sha256")
        else:
            self._known[part.sha256] = (seq - part.part, part.len)


class _Prefix(msgspec.Struct):
    """A request up to its tail: what the next one goes on from."""

    running: object
    length: int
    fragments: int
    tail: bytes


class _Requests:
    """Each request's bytes, put together from recorded fragments, have the recorded sha256 and length."""

    def __init__(self, texts: LogTexts) -> None:
        self.problems: list[str] = []
        self.checked = 0
        self._texts = texts
        self._prefixes: dict[tuple[str, int], _Prefix] = {}

    def take(self, record: Record) -> None:
        if not isinstance(record.data, StepStarted):
            return
        request = record.data.request
        try:
            prefix = self._start(record.agent, request.after, head=request.head, tail=request.tail)
            if prefix is None:
                self.problems.append(f"record {record.seq} goes on from a request that isn't there")
                return
            running = prefix.running.copy()  # type: ignore[attr-defined]
            length, fragments = prefix.length, prefix.fragments
            for text in request.add:
                fragment = (b"," if fragments else b"") + self._texts.data(text)
                running.update(fragment)
                length += len(fragment)
                fragments += 1
        except LogCorrupt as problem:
            self.problems.append(f"record {record.seq}: {problem}")
            return
        self._prefixes[record.agent, record.seq] = _Prefix(running.copy(), length, fragments, prefix.tail)
        running.update(prefix.tail)
        self.checked += 1
        if running.hexdigest() != request.sha256 or length + len(prefix.tail) != request.len:
            self.problems.append(f"record {record.seq}: its fragments don't give the request that it names")

    def _start(self, agent: str, after: int | None, *, head: Text | None, tail: str | None) -> _Prefix | None:
        if after is not None:
            return self._prefixes.get((agent, after))
        first = self._texts.data(head or "")
        return _Prefix(sha256(first), len(first), 0, (tail or "").encode())
