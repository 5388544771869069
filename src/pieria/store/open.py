"""Opens an existing log: lock, scan, classify, set a torn tail aside. May be cut off anywhere and simply done again.

Invariant: the torn tail is the only thing that is ever cut off a log here, after its copy is durable.
"""

from __future__ import annotations

import errno
import gc
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import msgspec

from pieria.core.errors import LogCorrupt, PieriaError
from pieria.core.events.session import FORMAT, MAGIC, SessionCreated, Torn
from pieria.core.record import Record
from pieria.store.blobs import LogTexts
from pieria.store.disk import Disk
from pieria.store.faults import paused, shared_file_system, unreadable
from pieria.store.lock import lock
from pieria.store.log import Log
from pieria.store.paths import session_of
from pieria.store.scan import BUFFER, Gap, Scan
from pieria.store.stamp import Clock
from pieria.store.sync import Barrier
from pieria.store.torn import set_aside, unreported

Take = Callable[[Record], object]


class Opened(msgspec.Struct, frozen=True):
    """A log that was read to its end. `log` is None when it can't be written; `read_only_reason` then says why.

    `torn` is a tail set aside and not yet recorded in a session.opened; `warning` is about the place of the file.
    """

    log: Log | None
    texts: LogTexts
    header: SessionCreated | None
    records: int
    head: str
    unclean_ends: int
    torn: Torn | None = None
    read_only_reason: str = ""
    gaps: tuple[Gap, ...] = ()
    unknown: tuple[str, ...] = ()
    warning: str = ""


def open_log(path: str, *, clock: Clock, take: Take, disk: Disk | None = None) -> Opened:
    """Lock and read a log, handing each sound record to `take`, and make it ready for the next record.

    Raises SessionBusy, LogCorrupt when it is no log of this session, PieriaError when it can't be opened.
    """
    disk = disk or Disk()
    fd, denied = _open_file(path)
    with _closed_on_failure(fd):
        lock(fd, path)
        scan = _scanned(fd, path, take)
        _check_header(scan, path)
        reason = denied or _reason(scan)
        torn = None
        if not reason:
            try:
                torn = _cut(fd, path, scan, disk=disk)
            except OSError as problem:
                reason = str(paused(path, problem, disk=disk, fd=fd))
    texts = LogTexts(fd, path, offsets=scan.chain.offsets)
    log = None
    if not reason:
        last = scan.chain.next_seq - 1
        scan.chain.epoch += 1
        barrier = Barrier(fd, path, disk=disk, written=last, durable=last)
        log = Log(fd, path, chain=scan.chain, clock=clock, disk=disk, barrier=barrier)
        texts = log.texts
    return _opened(scan, texts, log=log, torn=torn, reason=reason)


def read_log(path: str, *, take: Take) -> Opened:
    """Read a log without its lock and without changing anything: somebody else may be writing it."""
    fd = _read_only(path)
    with _closed_on_failure(fd):
        scan = _scanned(fd, path, take)
        _check_header(scan, path)
    texts = LogTexts(fd, path, offsets=scan.chain.offsets)
    return _opened(scan, texts, log=None, torn=None, reason=_reason(scan) or "opened for reading")


@contextmanager
def opened_file(path: str) -> Iterator[BinaryIO]:
    """Open a log for reading alone, with the errors in words."""
    with open(_read_only(path), "rb", buffering=BUFFER) as file:
        yield file


@contextmanager
def _closed_on_failure(fd: int) -> Iterator[None]:
    whole = False
    try:
        yield
        whole = True
    finally:
        if not whole:
            os.close(fd)


def _opened(scan: Scan, texts: LogTexts, *, log: Log | None, torn: Torn | None, reason: str) -> Opened:
    return Opened(
        log=log,
        texts=texts,
        header=scan.header,
        records=len(scan.chain.offsets),
        head=scan.chain.prev,
        unclean_ends=scan.unclean_ends,
        torn=torn,
        read_only_reason=reason,
        gaps=tuple(scan.gaps),
        unknown=tuple(scan.unknown),
        warning=shared_file_system(texts.path),
    )


def _open_file(path: str) -> tuple[int, str]:
    """Open for reading and appending; for reading alone where writing is not allowed, with the reason."""
    _check_regular(path)
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC), ""
    except OSError as problem:
        if problem.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise unreadable(path, problem) from problem
        reason = "the log can't be written: " + os.strerror(problem.errno).lower()
    return _read_only(path), reason


def _read_only(path: str) -> int:
    _check_regular(path)
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise unreadable(path, problem) from problem


def _check_regular(path: str) -> None:
    """A pipe would be waited for; a folder can be opened and not read."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as problem:
        raise unreadable(path, problem if isinstance(problem, OSError) else OSError(errno.EINVAL, "")) from problem
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise PieriaError(f"This is {what}, not a session log: {path}", "name a session or a .jsonl file of one")


def _scanned(fd: int, path: str, take: Take) -> Scan:
    """Read everything with the garbage collector off: it would look at each new value again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with open(fd, "rb", buffering=BUFFER, closefd=False) as file:
            scan = Scan(file)
            for record in scan.records():
                take(record)
    except OSError as problem:  # a folder opens, and fails to be read
        raise unreadable(path, problem) from problem
    finally:
        if collecting:
            gc.enable()
    return scan


def _check_header(scan: Scan, path: str) -> None:
    header = scan.header
    if header is None:
        if scan.gaps:
            return  # it was one: what can be read is shown
        raise LogCorrupt(*_no_log(scan, path))
    if header.magic != MAGIC:
        raise LogCorrupt(f"This is no session log: {path}", "only files that this program wrote can be opened")
    if header.format > FORMAT:
        raise LogCorrupt(
            f"The log has format {header.format}, this version knows up to {FORMAT}: {path}",
            "a newer version wrote it: update to open it",
        )
    if header.session != session_of(path):
        raise LogCorrupt(
            f"The file is named {session_of(path)} and holds session {header.session}: {path}",
            f"it is a copy or was renamed; only {header.session}.jsonl may be opened under that name",
        )


def _no_log(scan: Scan, path: str) -> tuple[str, str]:
    if scan.unknown:
        return f"The log begins with a record that this version doesn't know: {path}", "update to open it"
    if scan.torn_at is None and not scan.chain.offsets:
        return f"The file is empty: {path}", "no session was recorded in it; it may be removed"
    return f"The file doesn't begin as a session log does: {path}", "only files that this program wrote can be opened"


def _reason(scan: Scan) -> str:
    if scan.gaps:
        places = "; ".join(in_words(gap) for gap in scan.gaps[:5])
        more = f"; and {len(scan.gaps) - 5} more" if len(scan.gaps) > 5 else ""
        return f"the log is damaged: {places}{more}"
    if scan.unknown:
        return f"a newer version wrote {scan.unknown[0]}: update to go on with this session"
    return ""


def in_words(gap: Gap) -> str:
    """Say where damage is and what is missing there."""
    if gap.start == gap.end and gap.next == gap.first:
        return f"from byte {gap.start} on, records don't follow one another as they were written, none missing"
    place = f"at byte {gap.start}" if gap.start == gap.end else f"bytes {gap.start} to {gap.end}"
    if gap.next is None:
        return f"{place}, from record {gap.first} on"
    if gap.next == gap.first:
        return f"{place}, no record missing"
    if gap.next == gap.first + 1:
        return f"{place}, record {gap.first} missing"
    return f"{place}, records {gap.first} to {gap.next - 1} missing"


def _cut(fd: int, path: str, scan: Scan, *, disk: Disk) -> Torn | None:
    """Set a torn tail aside and cut it off; sync what the last process may not have synced.

    A copy that no session.opened names was made by an opening that was cut off: it is reported again.
    """
    torn = None
    if scan.torn_at is not None:
        torn = set_aside(fd, path, start=scan.torn_at, disk=disk)
        disk.ftruncate(fd, scan.torn_at)
    disk.fdatasync(fd)
    return torn or unreported(path, scan.copies)
