"""Looking at logs: find, list, show, follow, measure, verify. Reads only."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

import msgspec

from pieria.core.record import Record, type_name
from pieria.headless.printing import json_line
from pieria.headless.words import shorten
from pieria.store import show as reading
from pieria.store.index import list_sessions
from pieria.store.open import in_words
from pieria.store.paths import find_session, sessions_dir
from pieria.store.stats import stats as measure
from pieria.store.verify import verify as check


def path_of(log: str) -> str:
    """A log's path from a session id, the start of one, or a file name."""
    if "/" in log or log.endswith(".jsonl"):
        return log
    return find_session(sessions_dir(os.environ), log)


def session_lines(*, search: str, here: bool, as_json: bool) -> Iterator[str]:
    """One line a session, newest first."""
    for row in list_sessions(sessions_dir(os.environ)):
        if here and os.path.realpath(row.cwd) != os.path.realpath(os.curdir):
            continue
        if search and search.lower() not in f"{row.id} {row.cwd} {row.prompt}".lower():
            continue
        if as_json:
            yield msgspec.json.encode(row).decode() + "\n"
        else:
            state = row.outcome or row.state if row.state == "closed" else row.state
            last = row.last[:16].replace("T", " ")
            yield f"{row.id}  {last}  {state:<11}  {shorten(row.cwd, 40)}  {shorten(row.prompt, 60)}\n"


def verify(path: str, *, as_json: bool) -> int:
    """Print what was checked and the head hash; exit 6 when something is wrong."""
    report = check(path)
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        return 0 if report.ok else 6
    sys.stdout.write(
        f"{report.records} records, {report.requests} requests, {report.bytes} bytes; head {report.head}\n"
    )
    if report.torn_bytes:
        sys.stdout.write(
            f"note: a torn tail of {report.torn_bytes} bytes, never acknowledged; the next opening sets it aside\n"
        )
    for gap in report.gaps:
        sys.stderr.write(f"damaged: {in_words(gap)}\n")
    for problem in report.problems:
        sys.stderr.write(f"wrong: {problem}\n")
    for unknown in report.unknown:
        sys.stderr.write(f"note: {unknown} is from a newer version\n")
    if not report.ok:
        sys.stderr.write("pieria: the log is corrupt\nhint: 'pieria log show' prints every record that is sound\n")
    return 0 if report.ok else 6


def stats(path: str, *, as_json: bool) -> int:
    """Print turns, steps, calls and tokens."""
    told = measure(path)
    if as_json:
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
        return 0
    for name, value in msgspec.to_builtins(told).items():
        if isinstance(value, dict):
            sys.stdout.write(f"{name}:\n")
            for key, entry in value.items():
                sys.stdout.write(f"  {key}: {_plain(entry)}\n")
        else:
            sys.stdout.write(f"{name}: {_plain(value)}\n")
    return 0


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {entry}" for key, entry in value.items())
    return str(value)


def show(path: str, *, agent: str, type: str, from_seq: int, to_seq: int | None, as_json: bool) -> int:
    """Print records that match; gaps are named on stderr."""
    for record in reading.records(path, agent=agent, type=type, from_seq=from_seq, to_seq=to_seq):
        _print(record, as_json=as_json)
    sys.stdout.flush()
    report = check(path)
    for gap in report.gaps:
        sys.stderr.write(f"gap: {in_words(gap)}\n")
    for problem in report.problems:
        sys.stderr.write(f"wrong: {problem}\n")
    return 0 if report.ok else 6


def follow(path: str, *, agent: str, type: str, as_json: bool) -> int:
    """Print records as they come, until interrupted."""

    async def go() -> None:
        async for record in reading.follow(path):
            if (not agent or record.agent == agent) and (not type or type_name(record) == type):
                _print(record, as_json=as_json)
                sys.stdout.flush()

    asyncio.run(go())
    return 0


def _print(record: Record, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(json_line(record))
        return
    data = msgspec.json.encode(record.data).decode()
    op = f" {record.op}" if record.op else ""
    sys.stdout.write(
        f"{record.seq:>6} {record.time[11:23]} {record.agent:<8} {type_name(record):<20}{op} {shorten(data, 160)}\n"
    )
