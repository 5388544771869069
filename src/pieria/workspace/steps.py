"""The steps of changing one file: prepare beside it, bring it in, check what came out, take it back, clean up.

Every step may be the last one that this process does: `spots.state` and the names beside a path tell where it stopped.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from pieria.workspace.disk import Disk
from pieria.workspace.reading import digest
from pieria.workspace.spots import Changed, Spot, removable, state

IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Why a file beside the target can't be made like it: then the target is written in place."""

PINNED = (errno.EBUSY, errno.EXDEV)
"""What a rename over a file that is itself a mount says."""


def prepare(disk: Disk, spot: Spot) -> bool:
    """Write and sync the new bytes beside the path. False: this file has to be written in place instead."""
    if spot.post_sha256 is None or spot.only_mode:
        return True
    assert spot.post is not None
    if spot.pre_sha256 is None:
        write_beside(disk, spot, spot.post, like=None)
        return True
    if os.lstat(spot.path).st_nlink > 1:
        _check_writable(spot)
        return False
    try:
        write_beside(disk, spot, spot.post, like=spot.path)
    except OSError as error:
        if error.errno not in IN_PLACE:
            raise
        _drop(disk, spot.temp)
        _check_writable(spot)
        return False
    return True


def _check_writable(spot: Spot) -> None:
    if not os.access(spot.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, "It can only be written in place, and it is read-only", spot.path)


def _drop(disk: Disk, path: str) -> None:
    if os.path.lexists(path):
        disk.unlink(path)


def write_beside(disk: Disk, spot: Spot, data: bytes, *, like: str | None) -> None:
    """Make the temp file with its final owner, attributes and mode, and sync it."""
    fresh = like is None and spot.mode is None
    fd = disk.open(spot.temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if fresh else 0o600)
    try:
        _write(disk, fd, data)
        if like is not None:
            _dress(disk, fd, like, spot.mode)
        elif spot.mode is not None:
            disk.chmod(fd, spot.mode)
        disk.fsync(fd)
    finally:
        os.close(fd)


def _write(disk: Disk, fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[disk.write(fd, view) :]


def _dress(disk: Disk, fd: int, like: str, mode: int | None) -> None:
    """Give a new file the owner, attributes and mode of the one it will replace."""
    source = os.open(like, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        old, new = os.fstat(source), os.fstat(fd)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            disk.chown(fd, old.st_uid, old.st_gid)
        disk.copy_attributes(source, fd)
        disk.chmod(fd, stat.S_IMODE(old.st_mode) if mode is None else mode)
    finally:
        os.close(source)


def bring_in(disk: Disk, spot: Spot, *, prepared: bool) -> None:
    """Make one change visible. Changed: it was not the file we knew, and it is as it was."""
    if spot.only_mode:
        set_mode(disk, spot)
    elif spot.post_sha256 is None:
        _take_out(disk, spot)
    elif spot.pre_sha256 is None:
        try:
            disk.move(spot.temp, spot.path)
        except FileExistsError as error:
            raise Changed(f"{spot.path} exists now") from error
    elif not prepared:
        assert spot.post is not None
        overwrite(disk, spot, spot.post, known=spot.pre_sha256)
    else:
        _swap_in(disk, spot)


def set_mode(disk: Disk, spot: Spot) -> None:
    """Give a file the mode that its change asks for, if it asks for one."""
    if spot.mode is None or stat.S_IMODE(os.lstat(spot.path).st_mode) == spot.mode:
        return
    fd = disk.open(spot.path, os.O_RDONLY)
    try:
        disk.chmod(fd, spot.mode)
        disk.fsync(fd)
    finally:
        os.close(fd)


def _take_out(disk: Disk, spot: Spot) -> None:
    try:
        disk.move(spot.path, spot.aside)
    except FileNotFoundError as error:
        raise Changed(f"{spot.path} is gone") from error
    if digest(spot.aside) != spot.pre_sha256:
        disk.move(spot.aside, spot.path)
        raise Changed(f"{spot.path} changed")


def _swap_in(disk: Disk, spot: Spot) -> None:
    try:
        swap(disk, spot, expected=spot.pre_sha256)
    except FileNotFoundError as error:
        raise Changed(f"{spot.path} is gone") from error
    except OSError as error:
        if error.errno not in PINNED:
            raise
        assert spot.post is not None
        _drop(disk, spot.temp)
        overwrite(disk, spot, spot.post, known=spot.pre_sha256)


def swap(disk: Disk, spot: Spot, *, expected: str | None) -> None:
    """Exchange path and temp file, then look at what came out; if it is not what was expected, exchange again."""
    try:
        disk.exchange(spot.temp, spot.path)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        _replace(disk, spot, expected=expected)
        return
    if digest(spot.temp) != expected:
        disk.exchange(spot.temp, spot.path)
        raise Changed(f"{spot.path} changed")


def _replace(disk: Disk, spot: Spot, *, expected: str | None) -> None:
    """Do what an exchange does where there is none: keep the old file by a second name, then rename over the first.

    A change made between the two calls is lost; without hard links also one made since the last check.
    """
    if digest(spot.path) != expected:
        raise Changed(f"{spot.path} changed")
    try:
        disk.link(spot.path, spot.aside)
    except OSError as error:
        if error.errno not in {errno.EMLINK, *IN_PLACE}:
            raise
    disk.replace(spot.temp, spot.path)
    if os.path.lexists(spot.aside) and digest(spot.aside) != expected:
        disk.replace(spot.aside, spot.path)
        raise Changed(f"{spot.path} changed")


def overwrite(disk: Disk, spot: Spot, data: bytes, *, known: str | None) -> None:
    """Write a file in place, for one whose identity must stay. `known`: the hash it must have, None for no check."""
    fd = disk.open(spot.path, os.O_RDWR)
    try:
        if known is not None and digest(spot.path) != known:
            raise Changed(f"{spot.path} changed")
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        _write(disk, fd, data)
        disk.truncate(fd, len(data))
        wanted = mode if spot.mode is None else spot.mode
        if stat.S_IMODE(os.fstat(fd).st_mode) != wanted:  # a write takes set-id bits away
            disk.chmod(fd, wanted)
        disk.fsync(fd)
    finally:
        os.close(fd)


def take_back(disk: Disk, spot: Spot) -> bool:
    """Undo a change that was brought in, if the path still holds just that. False: it does not."""
    now = state(spot)
    if now == "before" or spot.only_mode:
        return True
    if now == "other":
        return False
    if spot.pre_sha256 is None:
        disk.move(spot.path, spot.aside)
        if digest(spot.aside) != spot.post_sha256:
            disk.move(spot.aside, spot.path)
            return False
        return True
    try:
        return _put_back(disk, spot, now)
    except (Changed, FileExistsError):
        return False


def _put_back(disk: Disk, spot: Spot, now: str) -> bool:
    if digest(spot.aside) == spot.pre_sha256:
        if spot.post_sha256 is None:
            disk.move(spot.aside, spot.path)
        else:
            disk.replace(spot.aside, spot.path)
        return True
    if digest(spot.temp) != spot.pre_sha256:
        if spot.pre is None:
            return False
        if spot.post_sha256 is not None and (now == "begun" or os.lstat(spot.path).st_nlink > 1):
            overwrite(disk, spot, spot.pre, known=None if now == "begun" else spot.post_sha256)
            return True
        if not clean(disk, spot):
            return False
        try:
            write_beside(disk, spot, spot.pre, like=None if spot.post_sha256 is None else spot.path)
        except OSError as error:
            if spot.post_sha256 is None or error.errno not in IN_PLACE:
                raise
            _drop(disk, spot.temp)
            overwrite(disk, spot, spot.pre, known=spot.post_sha256)
            return True
    if spot.post_sha256 is None:
        disk.move(spot.temp, spot.path)
    else:
        swap(disk, spot, expected=spot.post_sha256)
    return True


def clean(disk: Disk, spot: Spot) -> bool:
    """Remove what lies beside the path. False: something there is nobody's but its writer's, and it stays."""
    gone = True
    for name in (spot.temp, spot.aside):
        if os.path.lexists(name):
            if removable(spot, name):
                disk.unlink(name)
            else:
                gone = False
    return gone


def sync_folders(disk: Disk, spots: Iterable[Spot]) -> None:
    """Make the names durable: each folder once."""
    for folder in dict.fromkeys(spot.folder for spot in spots):
        if os.path.isdir(folder):
            disk.sync_folder(folder)


def make_folder(disk: Disk, folder: str, made: list[str]) -> None:
    """Make a folder and those above it that are missing, durably; add each one made to the list."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        disk.mkdir(one)
        made.append(one)
        disk.sync_folder(os.path.dirname(one))
