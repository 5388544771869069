"""One line at a time: is it a sound record by itself? Never raises, whatever the bytes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pieria.core.record import TAIL_BYTES, BadLine, Envelope, Record, UnknownData, chain_hash, decode

HASH_FIELD = b',"hash":"'
START, SECOND = b'{"seq":', b',"prev":"'
"""How a record begins. Inside another one it can't stand in a text (its quotes would be escaped), and no value has both
fields one after the other.
"""

_ENVELOPE = msgspec.json.Decoder(Envelope)


def read(line: bytes) -> Record | None:
    """Return the record of one line with its newline; None when the bytes are not what a writer wrote.

    A sound line that this version can't type comes with UnknownData, as those of unknown types do.
    """
    if line[-TAIL_BYTES : 9 - TAIL_BYTES] != HASH_FIELD or line[-1:] != b"\n":
        return None
    try:
        return decode(line)
    except BadLine:
        return _untyped(line)
    except RecursionError:  # nested deeper than any writer of ours nests
        return None


def pieces(line: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Split a line in which several records stand: start, end, and bytes with a newline of their own."""
    start = _find_start(line, 0)
    while start >= 0:
        following = _find_start(line, start + 1)
        end = following if following >= 0 else len(line)
        piece = line[start:end]
        yield start, end, piece if following < 0 else piece + b"\n"
        start = following


def _find_start(line: bytes, at: int) -> int:
    while (at := line.find(START, at)) >= 0:
        digits = at + len(START)
        comma = line.find(b",", digits, digits + 20)
        if comma > digits and line[digits:comma].isdigit() and line.startswith(SECOND, comma):
            return at
        at += 1
    return -1


def _untyped(line: bytes) -> Record | None:
    if chain_hash(line[:-TAIL_BYTES]).encode() != line[9 - TAIL_BYTES : -3] or not line.endswith(b'"}\n'):
        return None
    try:
        found = _ENVELOPE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Record(
        seq=found.seq, prev=found.prev, durable=found.durable, epoch=found.epoch, time=found.time, agent=found.agent,
        n=found.n, v=found.v, data=UnknownData(found.type, found.data), op=found.op, cause=found.cause,
        basis=found.basis, hash=found.hash,
    )  # fmt: skip
