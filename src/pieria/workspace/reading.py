"""Reading regular files whole: never a device, never a link put in a path's place, never half of a change."""

from __future__ import annotations

import errno
import hashlib
import os
import stat

from pieria.core.ports import FileImage, FileProblem

CHUNK = 1 << 20
ATTEMPTS = 3
TICK_NS = 50_000_000
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

NOT_A_FILE = "not a file"
UNREADABLE = "unreadable"


def read(real: str, *, limit: int) -> FileImage:
    """Return all of a regular file with its hash and mode; FileProblem says why not, in words for the model."""
    for _ in range(ATTEMPTS):
        image = _attempt(real, limit)
        if image is not None:
            return image
    raise FileProblem("other", f"{real} keeps changing while it is read. Wait for whatever writes it.")


def _attempt(real: str, limit: int) -> FileImage | None:
    try:
        _check(os.lstat(real), real)
        fd = os.open(real, FLAGS)
    except (OSError, ValueError) as error:
        raise problem(error, real) from error
    try:
        before = os.fstat(fd)
        _check(before, real)
        if before.st_size > limit:
            raise FileProblem("too_big", _too_big(real, before.st_size, limit))
        data = _all(fd, limit + 1)
        after = os.fstat(fd)
        steady = _is_old(before) or _all(fd, limit + 1, again=True) == data
    except OSError as error:
        raise problem(error, real) from error
    finally:
        os.close(fd)
    if not steady or _moment(before) != _moment(after) or (before.st_size and len(data) != before.st_size):
        return None
    if len(data) > limit:
        raise FileProblem("too_big", _too_big(real, len(data), limit))
    return FileImage(real, data, hashlib.sha256(data).hexdigest(), stat.S_IMODE(before.st_mode))


def _moment(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_old(status: os.stat_result) -> bool:
    """Whether a change during the reading must show in the times: they move in ticks."""
    import time

    return time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > TICK_NS


def _all(fd: int, most: int, *, again: bool = False) -> bytes:
    if again:
        os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while most > 0 and (part := os.read(fd, min(CHUNK, most))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _too_big(real: str, size: int, limit: int) -> str:
    return f"{real} has {size:,} bytes or more; at most {limit:,} are read. Use the shell to look at parts of it."


def _check(status: os.stat_result, real: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise FileProblem("folder", f"{real} is a folder, not a file.")
    kinds = {
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFLNK: "a link that leads nowhere or in a circle",
    }
    what = kinds.get(stat.S_IFMT(status.st_mode), "no regular file")
    raise FileProblem("special", f"{real} is {what}; only regular files are read.")


def problem(error: OSError | ValueError, real: str) -> FileProblem:
    """Say in words what the system said."""
    if not isinstance(error, OSError):
        return FileProblem("refused", f"{real!r} is no path: it has a NUL or a character that no file name can have.")
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        from pieria.workspace.nearby import hint

        return FileProblem("absent", f"There is no file {real}.{hint(real)}")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return FileProblem("denied", f"The system does not let us read {real}.")
    if error.errno == errno.ELOOP:
        return FileProblem("special", f"{real} is a link that leads nowhere or in a circle.")
    if error.errno == errno.ENAMETOOLONG:
        return FileProblem("refused", f"The path is too long for this system: {real[:100]}…")
    return FileProblem("other", f"{real} can't be read: {error.strerror}.")


def digest(real: str) -> str | None:
    """Return the sha256 of a regular file, None when nothing is there, else NOT_A_FILE or UNREADABLE."""
    try:
        if not stat.S_ISREG(os.lstat(real).st_mode):
            return NOT_A_FILE
        fd = os.open(real, FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNREADABLE
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return NOT_A_FILE
        found = hashlib.sha256()
        while part := os.read(fd, CHUNK):
            found.update(part)
    except OSError:
        return UNREADABLE
    finally:
        os.close(fd)
    return found.hexdigest()
