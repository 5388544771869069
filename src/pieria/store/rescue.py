"""After a failed sync: what verifies on disk and what memory still has, in a new file in the old one's place."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence

from pieria.core.errors import LogCorrupt
from pieria.core.record import FIRST_PREV
from pieria.store.chain import LINE_BYTES
from pieria.store.disk import Disk, sync_folder
from pieria.store.faults import frozen
from pieria.store.lines import read

CHUNK = 1 << 20


def rescued(fd: int, path: str, *, sound: int, lines: Sequence[bytes], disk: Disk) -> int:
    """Return a locked descriptor of the new file. `sound` bytes were durable; `lines` come after them.

    Nothing of the old descriptor's cache is believed. Raises PieriaError; the old file then is as it was.
    """
    temp = f"{path}.rescue-{os.getpid()}"
    fresh = -1
    try:
        fresh = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(fresh, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _verify(fd, path, sound=sound)
        for start in range(0, sound, CHUNK):
            _write(disk, fresh, os.pread(fd, min(CHUNK, sound - start), start))
        for line in lines:
            _write(disk, fresh, line)
        disk.fsync(fresh)
        disk.rename(temp, path)
        sync_folder(disk, os.path.dirname(path) or ".")
    except (OSError, LogCorrupt) as problem:
        if fresh >= 0:
            os.close(fresh)
            _remove(temp)
        if isinstance(problem, LogCorrupt):
            raise
        raise frozen(path, problem, disk=disk, fd=fd) from problem
    return fresh


def _verify(fd: int, path: str, *, sound: int) -> None:
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    prev, seq = FIRST_PREV, 0
    with os.fdopen(os.dup(fd), "rb", buffering=CHUNK) as file:
        file.seek(0)
        while file.tell() < sound:
            record = read(file.readline(LINE_BYTES))
            if record is None or record.prev != prev or record.seq != seq:
                raise LogCorrupt(
                    f"Record {seq} was durable and is no longer in the log: {path}",
                    "the disk lost it; copy the file to another disk before anything else",
                )
            prev, seq = record.hash, seq + 1


def _write(disk: Disk, fd: int, data: bytes) -> None:
    while data:
        data = data[disk.write(fd, data) :]


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
