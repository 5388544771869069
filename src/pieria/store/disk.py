"""The system calls of the log that can fail, in one object: a test passes a subclass that fails on purpose.

Invariant: nothing here decides anything, and no call retries.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable

KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE: blocks are set aside past the end of the file, its length stays."""

UNSUPPORTED = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EFBIG, errno.ENODEV})

_Fallocate = Callable[[int, int, int, int], int]


class Disk:
    """The real one. Every method raises OSError as the kernel has it."""

    def __init__(self) -> None:
        self._fallocate: _Fallocate | None = None

    def write(self, fd: int, data: bytes) -> int:
        """Write once; a short count is the caller's problem."""
        return os.write(fd, data)

    def fdatasync(self, fd: int) -> None:
        """Make the file's content durable, through the drive's own cache on macOS too."""
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def fsync(self, fd: int) -> None:
        """Make a file with its length, or a folder's entries, durable."""
        if sys.platform == "darwin" and not stat.S_ISDIR(os.fstat(fd).st_mode):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
        """Cut to `size` bytes; blocks set aside past the end are given back."""
        os.ftruncate(fd, size)

    def fstatvfs(self, fd: int) -> os.statvfs_result:
        """Return the figures of the file system that holds a file."""
        return os.fstatvfs(fd)

    def rename(self, source: str, target: str) -> None:
        """Put a file in the place of another."""
        os.rename(source, target)

    def reserve(self, fd: int, offset: int, length: int) -> bool:
        """Set blocks aside without changing the file's length. False: not possible on this file system."""
        if self._fallocate is None:
            self._fallocate = _find_fallocate()
        try:
            if self._fallocate(fd, KEEP_SIZE, offset, length) == 0:
                return True
        except OSError as problem:
            if problem.errno in UNSUPPORTED:
                return False
            raise
        return False


def sync_folder(disk: Disk, folder: str) -> None:
    """Make the entries of a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.fsync(fd)
    finally:
        os.close(fd)


def _find_fallocate() -> _Fallocate:
    """Look the call up in the C library. Late on purpose: ctypes is not for the start of a session."""
    import ctypes

    try:
        found = ctypes.CDLL(None, use_errno=True).fallocate
    except AttributeError:
        return _no_fallocate
    found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]

    def fallocate(fd: int, mode: int, offset: int, length: int) -> int:
        if found(fd, mode, offset, length) == 0:
            return 0
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

    return fallocate


def _no_fallocate(_fd: int, _mode: int, _offset: int, _length: int) -> int:
    return -1
