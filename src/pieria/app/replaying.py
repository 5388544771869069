"""Replay a log or a golden file with the world out of reach, and say where the first difference is."""

from __future__ import annotations

import os
import sys

import msgspec

from pieria.app.binding import ENCODERS
from pieria.app.logs import path_of
from pieria.app.offline import offline
from pieria.core.errors import LogCorrupt, PieriaError, UsageError
from pieria.core.record import Record
from pieria.runtime.golden import replay_golden, write_golden
from pieria.runtime.replay import Replayed, Sent, replay
from pieria.store.open import read_log
from pieria.store.verify import verify


def replay_log(log: str, *, to: int | None, golden: str | None, as_json: bool) -> int:
    """Verify the chain, then rebuild every request both ways. Exit 6 at damage or at the first difference."""
    path = path_of(log)
    report = verify(path)
    if report.gaps:
        raise LogCorrupt(f"the log is damaged: {len(report.gaps)} gaps", f"pieria log verify {log} names them")
    if report.unknown:
        raise LogCorrupt(f"a newer version wrote {report.unknown[0]}", "update to replay this log")
    records: list[Record] = []
    opened = read_log(path, take=records.append)
    sent: list[Sent] = []
    with offline():
        done = replay(records, opened.texts, ENCODERS, to=to, keep=sent if golden else None)
        upto = [record for record in records if to is None or record.seq <= to]
        lines = list(write_golden(upto, opened.texts, sent)) if golden and done.difference is None else []
    if done.difference is None and report.problems:
        raise LogCorrupt(report.problems[0], f"pieria log verify {log} names all problems")
    if lines and golden:
        _write(golden, lines)
    return _say(done, as_json=as_json)


def replay_golden_file(path: str, *, as_json: bool) -> int:
    """Derive each request of a golden file anew and compare."""
    try:
        with open(path, "rb") as source:
            lines = source.read().split(b"\n")
    except OSError as problem:
        raise UsageError(f"the golden file {path} can't be read: {problem.strerror}", "name a file") from problem
    if not lines[0].startswith(b'{"golden":1'):
        raise UsageError(f"{path} is no golden file of this version", "pieria replay LOG --write-golden FILE makes one")
    with offline():
        done = replay_golden([line for line in lines if line], ENCODERS)
    return _say(done, as_json=as_json)


def _write(path: str, lines: list[bytes]) -> None:
    part = f"{path}.part"
    try:
        with open(part, "wb") as target:
            target.writelines(lines)
        os.replace(part, path)
    except OSError as problem:
        raise PieriaError(f"the golden file {path} can't be written: {problem.strerror}", "name another") from problem


def _say(done: Replayed, *, as_json: bool) -> int:
    found = done.difference
    if as_json:
        told: dict[str, object] = {"records": done.records, "requests": done.requests, "not_rerun": done.not_rerun}
        told |= {"digest": done.digest, "same": found is None}
        if found is not None:
            told["difference"] = {"seq": found.seq, "agent": found.agent, "what": found.what, "at": found.at}
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    elif found is None:
        rerun = (
            f"; {done.not_rerun} by recorded bytes alone (their encoder is no longer here)" if done.not_rerun else ""
        )
        sys.stdout.write(f"{done.requests} requests rebuilt from {done.records} records, all the same{rerun}\n")
    if found is not None:
        sys.stdout.flush()
        raise LogCorrupt(
            f"replay differs at record {found.seq} (agent {found.agent}): {found.what}"
            + (
                f"; first at byte {found.at}:\n  recorded …{found.recorded!r}\n  rebuilt  …{found.rebuilt!r}"
                if found.at >= 0
                else ""
            ),
            "the log was changed, or this version derives requests differently",
        )
    return 0
