"""Lines that will be written together: worked out on copies, so that a failed write leaves the chain as it was."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from pieria.core.record import Draft, Record, encode
from pieria.core.values import INLINE_BYTES, SESSION, Blob
from pieria.store.chain import LINE_BYTES, Chain
from pieria.store.stow import SURE, in_plain_words, parts, stow, to_bytes

SHORT_BYTES = SURE
"""The longest text left inline in a record whose many short ones would not fit into a line."""


class Batch:
    """`lines` are (record, line, whether the log adds it by itself), in order."""

    __slots__ = ("_blobs", "_chain", "_counts", "_durable", "_limit", "_next_seq", "_prev", "_time", "lines", "size")

    def __init__(self, chain: Chain, *, durable: int, time: str, limit: int) -> None:
        self.lines: list[tuple[Record, bytes, bool]] = []
        self.size = 0
        self._chain = chain
        self._counts: dict[str, int] = {}
        self._blobs: dict[str, tuple[int, int]] = {}
        self._next_seq = chain.next_seq
        self._prev = chain.prev
        self._durable = durable
        self._time = time
        self._limit = limit

    def add(self, draft: Draft, *, own: bool = False) -> bool:
        """Queue a draft's line, after the blob records that its long texts need. False: it is too long for a line."""
        event = stow(draft.event, self._keep)
        if event is not draft.event:
            draft = msgspec.structs.replace(draft, event=event)
        agent = draft.agent
        n = self._counts.get(agent)
        if n is None:
            n = self._chain.counts.get(agent, 0)
        try:
            record, line = encode(
                draft, seq=self._next_seq, prev=self._prev, durable=self._durable, epoch=self._chain.epoch,
                time=self._time, n=n,
            )  # fmt: skip
        except UnicodeEncodeError:
            return self.add(msgspec.structs.replace(draft, event=in_plain_words(event)), own=own)
        self.lines.append((record, line, own))
        self.size += len(line)
        self._prev = record.hash
        self._next_seq += 1
        self._counts[agent] = n + 1
        return len(line) <= LINE_BYTES

    def commit(self) -> None:
        """Move the chain on: everything is on disk."""
        chain = self._chain
        for record, line, _ in self.lines:
            chain.offsets.append(chain.size)
            chain.size += len(line)
            chain.prev, chain.time, chain.said = record.hash, record.time, record.durable
        chain.next_seq = self._next_seq
        chain.counts.update(self._counts)
        chain.blobs.update(self._blobs)

    def _keep(self, text: str) -> str | Blob:
        if text.isascii():
            return text if len(text) <= self._limit else self._stored(text.encode())
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return self._stored(to_bytes(text))
        return text if len(data) <= self._limit else self._stored(data)

    def _stored(self, data: bytes) -> Blob:
        digest = sha256(data).hexdigest()
        known = self._blobs.get(digest) or self._chain.blobs.get(digest)
        if known is None:
            known = (self._next_seq, len(data))
            for part in parts(data, digest):
                self.add(Draft(SESSION, part), own=True)
            self._blobs[digest] = known
        return Blob(seq=known[0], sha256=digest, len=known[1])


def batch_of(drafts: Sequence[Draft], chain: Chain, *, durable: int, time: str) -> Batch:
    """Encode all drafts to follow on the chain, which stays as it is. Every line is at most LINE_BYTES long."""
    batch = Batch(chain, durable=durable, time=time, limit=INLINE_BYTES)
    if all(map(batch.add, drafts)):
        return batch
    batch = Batch(chain, durable=durable, time=time, limit=SHORT_BYTES)
    fits = all(map(batch.add, drafts))
    assert fits, "an event is too long for a line, without any long text"
    return batch
