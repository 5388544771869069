"""Who may write a log: whoever holds its lock, which the kernel drops with the process however that ends."""

from __future__ import annotations

import fcntl
import os

from pieria.core.errors import PieriaError, SessionBusy
from pieria.core.events.session import SessionOpened
from pieria.core.record import Record
from pieria.store.faults import unreadable
from pieria.store.lines import read
from pieria.store.paths import session_of

CHUNK = 1 << 20
TRIES = 5
PROBE_S = 0.01
"""A reader that looks whether a session is open holds its lock for a moment: wait that out."""


def lock(fd: int, path: str) -> None:
    """Take the lock of a log for as long as the descriptor lives. Raises SessionBusy with who holds it."""
    from time import sleep

    for left in range(TRIES, -1, -1):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:
                sleep(PROBE_S)
        except OSError as problem:
            raise PieriaError(
                f"The file system can't lock the session's log ({os.strerror(problem.errno or 0).lower()}): {path}",
                "set XDG_STATE_HOME to a folder on a local disk",
            ) from problem
        else:
            _check_same(fd, path)
            return
    raise _busy(fd, path)


def _check_same(fd: int, path: str) -> None:
    """A log may be replaced between its opening and its locking: then this is not the log any more."""
    try:
        here, there = os.fstat(fd), os.stat(path)
    except OSError as problem:
        raise unreadable(path, problem) from problem
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
        raise _busy(fd, path)


def _busy(fd: int, path: str) -> SessionBusy:
    opened = _last_opened(fd)
    who = "another process"
    if opened is not None and isinstance(opened.data, SessionOpened):
        who = f"process {opened.data.pid}, which opened it at {opened.time}"
    session = session_of(path)
    return SessionBusy(
        f"Session {session} is in use by {who}.",
        f"end that one first, or watch it: pieria log follow {session}",
    )


def _last_opened(fd: int) -> Record | None:
    """Look for the last session.opened from the end on."""
    mark, end, tail = b'"type":"session.opened"', os.fstat(fd).st_size, b""
    while end > 0:
        start = max(0, end - CHUNK)
        tail = os.pread(fd, end - start, start) + tail
        at = tail.rfind(mark)
        line_start = tail.rfind(b"\n", 0, at) + 1
        if at >= 0 and (line_start or start == 0):
            return read(tail[line_start : tail.find(b"\n", at) + 1])
        tail = tail[: tail.find(b"\n") + 1] if at < 0 else tail
        end = start
    return None


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs, as far as can be seen from here."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's, or no number of a process
        return True
    return True


def is_held(fd: int) -> bool:
    """Whether a process has the log open for writing. Takes the lock for a moment to find out."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False
