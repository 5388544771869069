"""Every system call that changes a file, in one place, so that tests can fail or kill each of them."""

from __future__ import annotations

import errno
import os
import sys

from pieria.workspace import renaming


class Disk:
    """The real one. Paths are absolute and real; nothing here follows a link at the end of a path."""

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK, mode)

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def truncate(self, fd: int, length: int) -> None:
        os.ftruncate(fd, length)

    def fsync(self, fd: int) -> None:
        """Return once the bytes are on the medium, not merely in the drive's cache."""
        if sys.platform == "darwin":
            import fcntl

            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)

    def chown(self, fd: int, uid: int, gid: int) -> None:
        os.fchown(fd, uid, gid)

    def chmod(self, fd: int, mode: int) -> None:
        os.fchmod(fd, mode)

    def copy_attributes(self, source: int, target: int) -> None:
        """Give a file another's extended attributes and access list; OSError if one can't be kept."""
        if sys.platform == "darwin":
            import ctypes

            library = ctypes.CDLL(None, use_errno=True)
            if library.fcopyfile(source, target, None, ctypes.c_uint(5)) != 0:  # COPYFILE_ACL | COPYFILE_XATTR
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            return
        for name in _names(source):
            value = os.getxattr(source, name)
            if name not in _names(target) or os.getxattr(target, name) != value:
                os.setxattr(target, name, value)

    def exchange(self, first: str, second: str) -> None:
        renaming.exchange(first, second)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)

    def move(self, source: str, target: str) -> None:
        """Rename to a free name. Without kernel support: a second link, then the first name goes; else look first."""
        try:
            renaming.move(source, target)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
        else:
            return
        try:
            self.link(source, target)
        except FileExistsError:
            raise
        except OSError:
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, target) from None
            os.rename(source, target)
        else:
            self.unlink(source)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def mkdir(self, path: str) -> None:
        os.mkdir(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def sync_folder(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.fsync(fd)
        finally:
            os.close(fd)


def _names(fd: int) -> list[str]:
    """Names of the attributes that belong to a file's owner; the kernel keeps the rest itself."""
    if sys.platform == "darwin":
        return []
    try:
        names = os.listxattr(fd)
    except OSError as error:
        if error.errno in renaming.LACKING:
            return []
        raise
    return [name for name in names if name.startswith(("user.", "system.posix_acl_access", "security.selinux"))]
