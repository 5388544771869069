"""P5: a log that someone changed is never taken for what was written.

What may happen: it can't be opened, or only be read with the damage named, or a part at its end that no later record
vouches for is set aside. What may not: that a record counts which was not written so, or that one is lost in silence.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable

from pieria.core.errors import PieriaError
from pieria.core.record import TAIL_BYTES, Record, chain_hash, decode
from pieria.store.open import open_log, read_log
from pieria.store.verify import verify
from tests.crash.judge import Differs

Lines = list[bytes]


def flip(dice: random.Random, lines: Lines) -> bytes:
    data = bytearray(b"".join(lines))
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def delete(dice: random.Random, lines: Lines) -> bytes:
    at = dice.randrange(len(lines) - 1)
    return b"".join(lines[:at] + lines[at + 1 :])


def swap(dice: random.Random, lines: Lines) -> bytes:
    at, other = sorted(dice.sample(range(len(lines)), 2))
    lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


def duplicate(dice: random.Random, lines: Lines) -> bytes:
    at = dice.randrange(len(lines))
    lines.insert(dice.choice((at, dice.randrange(len(lines) + 1))), lines[at])
    return b"".join(lines)


def glue(dice: random.Random, lines: Lines) -> bytes:
    at = dice.randrange(len(lines) - 1)
    lines[at] = lines[at][:-1]
    return b"".join(lines)


def cut_line(dice: random.Random, lines: Lines) -> bytes:
    at = dice.randrange(len(lines) - 1)
    lines[at] = lines[at][: dice.randrange(len(lines[at]))]
    return b"".join(lines)


def forge(dice: random.Random, lines: Lines) -> bytes:
    """Other words in a record, under its old hash."""
    at = dice.randrange(len(lines))
    lines[at] = _other_words(dice, lines[at])
    return b"".join(lines)


def forge_sealed(dice: random.Random, lines: Lines) -> bytes:
    """Other words under a hash of their own: the next record does not follow on it.

    Not the last one that a later record vouches for, nor those after it: what follows there may be a torn tail.
    """
    at = dice.randrange(max(1, covered_by(lines)))
    lines[at] = resealed(_other_words(dice, lines[at]))
    return b"".join(lines)


def zeros(dice: random.Random, lines: Lines) -> bytes:
    data = b"".join(lines)
    start = dice.randrange(len(data))
    end = min(len(data), start + dice.randrange(1, 5000))
    return data[:start] + bytes(end - start) + data[end:]


def nul_tail(dice: random.Random, lines: Lines) -> bytes:
    return b"".join(lines) + bytes(dice.randrange(1, 9000))


def foreign(dice: random.Random, lines: Lines) -> bytes:
    """A sound record of another log in the place of one."""
    at = dice.randrange(1, covered_by(lines) + 1)
    body = lines[at][:-TAIL_BYTES].replace(b'"prev":"' + decode(lines[at]).prev.encode(), b'"prev":"' + b"5" * 32)
    lines[at] = resealed(body + b"." * TAIL_BYTES)
    return b"".join(lines)


KINDS: dict[str, Callable[[random.Random, Lines], bytes]] = {
    each.__name__: each
    for each in (flip, delete, swap, duplicate, glue, cut_line, forge, forge_sealed, zeros, nul_tail, foreign)
}


def _other_words(dice: random.Random, line: bytes) -> bytes:
    """Change one letter or digit inside the data."""
    start = line.index(b'"data":') + 8
    places = [at for at in range(start, len(line) - TAIL_BYTES) if chr(line[at]).isalnum()]
    if not places:  # an event without fields
        return line.replace(b'"data":{}', b'"data":{"x":1}')
    at = dice.choice(places)
    other = dice.choice([char for char in b"abc123" if char != line[at]])
    return line[:at] + bytes([other]) + line[at + 1 :]


def covered_by(lines: Lines) -> int:
    """The last record for which a later one vouches that it was durable."""
    return max((decode(line).durable for line in lines), default=-1)


def resealed(line: bytes) -> bytes:
    """Give a changed line the hash of its bytes."""
    body = line[:-TAIL_BYTES]
    return body + b',"hash":"' + chain_hash(body).encode() + b'"}\n'


def check(log: bytes, changed: bytes, folder: str, session: str) -> None:
    """Raise Differs if the changed log is taken for sound."""
    lines = log.splitlines(keepends=True) if b"\r" not in log else [line + b"\n" for line in log.split(b"\n")[:-1]]
    records = [decode(line) for line in lines]
    covered = covered_by([line for line in lines if line in changed])  # who vouches must stand there still
    if log.startswith(changed) and (not changed or changed.endswith(b"\n")):
        return  # the same, or an earlier state: nobody can tell
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    path = f"{folder}/{session}.jsonl"
    _write(path, changed)
    _check_verify(path, records, covered)
    _check_reading(path, records)
    found: list[Record] = []
    try:
        opened = open_log(path, clock=lambda: 0, take=found.append)
    except PieriaError:
        return
    if opened.log is None:
        os.close(opened.texts.fd)
        return
    opened.log.drop()
    _demand(found == records[: len(found)], "what was handed out for going on is not what was written")
    _demand(len(found) > covered, f"record {covered} was durable, and is lost without a word")
    with open(path, "rb") as file:
        _demand(file.read() == b"".join(lines[: len(found)]), "something else stands in the opened log")
    _demand(opened.torn is not None, "something was set aside in silence")


def _check_verify(path: str, records: list[Record], covered: int) -> None:
    try:
        report = verify(path)
    except PieriaError:
        return
    if report.ok:
        _demand(report.torn_bytes > 0, "verify calls a changed log sound")
        _demand(report.records > covered, "verify misses a record that was durable")
        _demand(report.head == records[report.records - 1].hash, "verify names another head")


def _check_reading(path: str, records: list[Record]) -> None:
    """What a replay or a view is made of: the beginning of what was written, or there are gaps, and they are named."""
    found: list[Record] = []
    try:
        opened = read_log(path, take=found.append)
    except PieriaError:
        return
    os.close(opened.texts.fd)
    _demand(bool(opened.gaps) or found == records[: len(found)], "a reader was not told of a gap")


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _demand(claim: object, words: str) -> None:
    if not claim:
        raise Differs(words)
