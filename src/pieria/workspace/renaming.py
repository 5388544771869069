"""Two renames that `os` lacks: swapping two names in one step, and moving only to a name that is free.

Linux: renameat2. macOS: renamex_np. Where the kernel or the file system has neither, OSError(ENOTSUP).
"""

from __future__ import annotations

import errno
import os
import sys

LACKING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)

AT_FDCWD = -100
LINUX_NOREPLACE, LINUX_EXCHANGE = 1, 2
DARWIN_SWAP, DARWIN_EXCL = 2, 4
LINUX_CALLS = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "armv7l": 382, "ppc64le": 357, "s390x": 347}
"""Numbers of renameat2, for C libraries without it."""


def exchange(first: str, second: str) -> None:
    """Swap what two names stand for; nobody ever sees one of them missing."""
    _rename(first, second, LINUX_EXCHANGE, DARWIN_SWAP)


def move(source: str, target: str) -> None:
    """Rename to a name that is free, else FileExistsError."""
    _rename(source, target, LINUX_NOREPLACE, DARWIN_EXCL)


def _rename(source: str, target: str, linux_flag: int, darwin_flag: int) -> None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(source), os.fsencode(target)
    if sys.platform == "darwin":
        status = library.renamex_np(first, second, ctypes.c_uint(darwin_flag))
    elif hasattr(library, "renameat2"):
        status = library.renameat2(AT_FDCWD, first, AT_FDCWD, second, ctypes.c_uint(linux_flag))
    elif number := LINUX_CALLS.get(os.uname().machine):
        call = library.syscall
        call.restype = ctypes.c_long
        status = call(
            ctypes.c_long(number),
            ctypes.c_int(AT_FDCWD),
            ctypes.c_char_p(first),
            ctypes.c_int(AT_FDCWD),
            ctypes.c_char_p(second),
            ctypes.c_uint(linux_flag),
        )
    else:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), source, None, target)
    if status != 0:
        number = ctypes.get_errno()
        code = errno.ENOTSUP if number in LACKING else number
        raise OSError(code, os.strerror(code), source, None, target)
