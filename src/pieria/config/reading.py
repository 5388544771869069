"""Reads small regular files whole: never blocks on a pipe, never swallows a device, never follows a surprise."""

from __future__ import annotations

import errno
import os
import stat


class Unreadable(Exception):
    """A file that is there and can't be used; the text says why. Absent files are None, not this."""


def read_regular(path: str, *, limit: int) -> bytes | None:
    """Return a regular file's bytes, None when it is absent. Raises Unreadable; `limit` is in bytes."""
    try:
        data = read_start(path, limit=limit + 1)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise Unreadable(_why(problem)) from problem
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit // 1024} KB")
    return data


def read_start(path: str, *, limit: int) -> bytes:
    """Return at most `limit` bytes of a regular file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        parts = []
        while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _why(problem: OSError) -> str:
    match problem.errno:
        case errno.EACCES | errno.EPERM:
            return "there is no permission to read it"
        case errno.EISDIR:
            return "it is a folder, not a file"
        case errno.ENOTDIR:
            return "a part of its path is no folder"
        case errno.ELOOP:
            return "its links lead in a circle"
        case errno.ENXIO | errno.EINVAL:
            return "it is no regular file"
        case _:
            return (problem.strerror or str(problem)).lower()
