"""The list of sessions: heads and tails of their logs, and a cache of what those said. Nothing else depends on it.

Invariant: a log is the truth about itself; the cache may be absent, stale, garbage or unwritable at any time.
"""

from __future__ import annotations

import fcntl
import os
from typing import Literal

import msgspec

from pieria.core.events.session import BlobStored, SessionClosed, SessionCreated
from pieria.core.events.turns import PromptSubmitted
from pieria.core.record import Record
from pieria.core.values import Blob
from pieria.store.lines import read
from pieria.store.lock import is_alive, is_held
from pieria.store.paths import INDEX, SUFFIX, log_path, logs_in, unborn_in

HEAD_BYTES = 49_152
TAIL_BYTES = 16_384
PROMPT_CHARACTERS = 80
VERSION = 1

State = Literal["open", "closed", "unclean", "missing", "unreadable"]


class SessionRow(msgspec.Struct, frozen=True):
    """One session of the list. `state`: open while a process holds it, unclean when the last one never closed it.

    `prompt` is the beginning of the first one; `name` is for later versions.
    """

    id: str
    path: str
    state: State
    size: int = 0
    mtime_ns: int = 0
    cwd: str = ""
    created: str = ""
    last: str = ""
    prompt: str = ""
    outcome: str = ""
    name: str = ""


class _Index(msgspec.Struct, frozen=True):
    version: int
    rows: list[SessionRow]


def list_sessions(folder: str, index: str = "") -> tuple[SessionRow, ...]:
    """Return all sessions, newest first. A session whose log is gone is told of once, as missing.

    `index` is the cache's path, by default in the same folder.
    """
    index = index or os.path.join(folder, INDEX)
    cached = {row.id: row for row in _read_index(index)}
    rows = []
    _sweep(folder)
    for name in logs_in(folder):
        session = name.removesuffix(SUFFIX)
        row = _row(log_path(folder, session), session, cached.pop(session, None))
        if row is not None:
            rows.append(row)
    gone = [msgspec.structs.replace(row, state="missing") for row in cached.values() if row.state != "missing"]
    _write_index(index, rows)
    return tuple(sorted(rows + gone, key=lambda row: (row.created or row.id, row.id), reverse=True))


def latest_session(folder: str, cwd: str, index: str = "") -> SessionRow | None:
    """Return the session last used in a folder, whatever names lead there."""
    real = os.path.realpath(cwd)
    usable = [
        row
        for row in list_sessions(folder, index)
        if row.state in {"open", "closed", "unclean"} and row.cwd and os.path.realpath(row.cwd) == real
    ]
    return max(usable, key=lambda row: row.last, default=None)


def _sweep(folder: str) -> None:
    """Remove logs that a kill cut off before they had their name: nothing in them was acknowledged.

    Their process is gone and so is its lock; the lock alone is not enough, as it is taken just after the file is made.
    """
    for path in unborn_in(folder):
        if is_alive(int(path.rpartition("-")[2])):
            continue
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if not is_held(fd):
                _remove(path)
        finally:
            os.close(fd)


def _row(path: str, session: str, cached: SessionRow | None) -> SessionRow | None:
    """Read what changed; None when the log went away meanwhile."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError:
        return SessionRow(session, path, "unreadable")
    same = cached is not None and (cached.size, cached.mtime_ns) == (found.st_size, found.st_mtime_ns)
    if cached is not None and same and cached.path == path and cached.state in {"closed", "unreadable"}:
        return cached
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError:
        return SessionRow(session, path, "unreadable", found.st_size, found.st_mtime_ns)
    try:
        held = is_held(fd)
        if cached is not None and same and cached.path == path:
            return msgspec.structs.replace(cached, state="open" if held else "unclean")
        return _read_row(fd, path, session, held=held)
    except OSError:
        return SessionRow(session, path, "unreadable", found.st_size, found.st_mtime_ns)
    finally:
        os.close(fd)


def _read_row(fd: int, path: str, session: str, *, held: bool) -> SessionRow:
    found = os.fstat(fd)
    head = _sound(os.pread(fd, HEAD_BYTES, 0))
    end = _sound(os.pread(fd, TAIL_BYTES, found.st_size - TAIL_BYTES)) if found.st_size > TAIL_BYTES else head
    if not head or not isinstance(head[0].data, SessionCreated) or head[0].data.session != session:
        return SessionRow(session, path, "unreadable", found.st_size, found.st_mtime_ns)
    last = (end or head)[-1]
    closed = last.data if isinstance(last.data, SessionClosed) else None
    return SessionRow(
        id=session,
        path=path,
        state="open" if held else "closed" if closed else "unclean",
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        cwd=head[0].data.cwd,
        created=head[0].time,
        last=last.time,
        prompt=_prompt(head),
        outcome=closed.outcome if closed else "",
    )


def _sound(data: bytes) -> list[Record]:
    """Read the complete lines of a piece of a log that are sound by themselves."""
    return [record for line in data.split(b"\n") if (record := read(line + b"\n")) is not None]


def _prompt(head: list[Record]) -> str:
    contents = {record.seq: record.data for record in head if isinstance(record.data, BlobStored)}
    for record in head:
        if isinstance(record.data, PromptSubmitted):
            text = record.data.text
            if isinstance(text, Blob):
                stored = contents.get(text.seq)
                text = stored.text if stored is not None else ""
            return " ".join(text[: PROMPT_CHARACTERS * 4].split())[:PROMPT_CHARACTERS]
    return ""


def _read_index(index: str) -> list[SessionRow]:
    try:
        with open(index, "rb") as file:
            found = msgspec.json.decode(file.read(), type=_Index)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return found.rows if found.version == VERSION else []


def _write_index(index: str, rows: list[SessionRow]) -> None:
    """Write the cache if it can be written and nobody else is at it; else the next list reads a little more."""
    temp = f"{index}.new-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    try:
        lock = os.open(f"{index}.lock", flags, 0o600)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fd = os.open(temp, flags | os.O_TRUNC, 0o600)
        with open(fd, "wb") as file:
            file.write(msgspec.json.encode(_Index(VERSION, rows)))
        os.rename(temp, index)
    except OSError:
        _remove(temp)
    except UnicodeEncodeError:  # a path that is not UTF-8 can't be cached
        _remove(temp)
    finally:
        os.close(lock)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
