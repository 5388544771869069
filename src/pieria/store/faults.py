"""What is said when the disk fails: reason, file system, free bytes and path in plain words, then what to do."""

from __future__ import annotations

import errno
import os

from pieria.core.errors import PieriaError
from pieria.store.disk import Disk

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

SHARED = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "glusterfs", "lustre", "davfs", "fuse.")
"""Beginnings of types of file systems where locks may be missing or advisory on one machine alone."""

REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your disk quota is used up",
    errno.EFBIG: "the file has reached the largest size allowed for it",
    errno.EROFS: "the file system has become read-only",
    errno.EIO: "the disk reported an input/output error",
}

HINTS = {
    errno.ENOSPC: "free some space there; the session goes on where it stopped",
    errno.EDQUOT: "free some space or ask for more quota; the session goes on where it stopped",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f) and resume the session",
    errno.EROFS: "make the file system writable again; the session goes on where it stopped",
}


class LogPaused(PieriaError):
    """A record can't be written now: nothing was recorded, and the same append may be tried again later."""


class LogFrozen(PieriaError):
    """The disk lost data that it had taken: nothing more is written until the log is rescued or opened anew."""


def paused(path: str, problem: OSError | None, *, disk: Disk, fd: int) -> LogPaused:
    """Word a failed write. `problem` None: only part of a record was taken, which a full disk does."""
    number = problem.errno if problem is not None and problem.errno else errno.ENOSPC
    return LogPaused(
        f"The session log can't be written: {_reason(number)}.\n{_place(path, disk=disk, fd=fd)}",
        HINTS.get(number, "the session goes on once the log can be written again"),
    )


def frozen(path: str, problem: OSError, *, disk: Disk, fd: int) -> LogFrozen:
    """Word a failed sync."""
    return LogFrozen(
        f"The session log could not be made durable: {_reason(problem.errno or 0)}.\n{_place(path, disk=disk, fd=fd)}",
        "check the disk; what was acknowledged before is in the log, later records may be missing",
    )


def unreadable(path: str, problem: OSError) -> PieriaError:
    """Word a log that can't be opened at all."""
    hint = "check the path"
    if isinstance(problem, FileNotFoundError):
        hint = "list the sessions to see which there are"
    elif isinstance(problem, PermissionError):
        hint = "it belongs to another user, or its mode was changed: it should be readable by you"
    return PieriaError(f"The session log can't be opened: {_reason(problem.errno or 0)}: {path}", hint)


def mounted(path: str) -> tuple[str, str]:
    """Return the mount point and the type of the file system that holds a path; empty where the system can't tell."""
    try:
        real = os.path.realpath(path)
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            found = [_mount(line) for line in lines]
    except OSError:
        return "", ""
    holds = [each for each in found if real == each[0] or real.startswith(each[0].rstrip("/") + "/")]
    return max(holds, key=lambda each: len(each[0])) if holds else ("", "")


def shared_file_system(path: str) -> str:
    """Return a warning when the path lies on a network or synchronised file system, else nothing."""
    point, kind = mounted(path)
    if not kind.startswith(SHARED):
        return ""
    return (
        f"Sessions are kept on a {kind} file system ({point}): a second machine could write the same log. "
        "Set XDG_STATE_HOME to a folder on a local disk."
    )


def _reason(number: int) -> str:
    return REASONS.get(number) or (os.strerror(number).lower() if number else "unknown error")


def _mount(line: str) -> tuple[str, str]:
    left, _, right = line.partition(" - ")
    point = left.split(" ")[4].replace("\\040", " ")
    return point, right.split(" ", 1)[0]


def _place(path: str, *, disk: Disk, fd: int) -> str:
    point, kind = mounted(path)
    where = f"File system {point} ({kind})" if point else "Its file system"
    try:
        figures = disk.fstatvfs(fd)
    except OSError:
        return f"{where}, free bytes unknown; log: {path}"
    return f"{where}, {figures.f_bavail * figures.f_frsize} bytes free; log: {path}"
