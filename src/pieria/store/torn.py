"""Sets an unacknowledged tail aside before it is cut off: nothing that was once in a log is thrown away."""

from __future__ import annotations

import errno
import os
from hashlib import sha256

from pieria.core.events.session import Torn
from pieria.store.disk import Disk, sync_folder

CHUNK = 1 << 20


def set_aside(fd: int, path: str, *, start: int, disk: Disk) -> Torn:
    """Copy what stands from `start` on beside the log, durably. Raises OSError. Done twice, it finds its first copy."""
    size = os.fstat(fd).st_size - start
    digest = _digest(fd, start)
    for number in range(1, 1_000_000):
        copy = f"{path}.torn-{number}"
        try:
            target = os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            if _torn_of(copy) == Torn(size, digest, copy):
                return Torn(size, digest, copy)
            continue
        try:
            at = start
            while chunk := os.pread(fd, CHUNK, at):
                at += len(chunk)
                while chunk:
                    chunk = chunk[disk.write(target, chunk) :]
            disk.fsync(target)
        except OSError:
            os.unlink(copy)
            raise
        finally:
            os.close(target)
        sync_folder(disk, os.path.dirname(path) or ".")
        return Torn(size, digest, copy)
    raise OSError(errno.EEXIST, "too many torn tails")


def unreported(path: str, reported: set[str]) -> Torn | None:
    """Return the last copy whose name no record has: the opening that made it was cut off before it could say so."""
    found, number = None, 1
    while os.path.exists(copy := f"{path}.torn-{number}"):
        if os.path.basename(copy) not in reported:
            found = _torn_of(copy)
        number += 1
    return found


def _torn_of(copy: str) -> Torn:
    fd = os.open(copy, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return Torn(os.fstat(fd).st_size, _digest(fd, 0), copy)
    finally:
        os.close(fd)


def _digest(fd: int, start: int) -> str:
    running = sha256()
    while chunk := os.pread(fd, CHUNK, start):
        running.update(chunk)
        start += len(chunk)
    return running.hexdigest()
