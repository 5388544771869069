"""One change of an edit on disk: its names, its bytes, and what each name holds now.

The temp file holds the new bytes, and after a swap what came out. The aside file holds what was moved away.
"""

from __future__ import annotations

import hashlib
import os
import stat

import msgspec

from pieria.core.values import Change, OpId
from pieria.workspace.reading import digest

PREFIX = ".pieria-"
BLOCK = 4096


class Changed(Exception):
    """Something else changed a file meanwhile; nothing of this change is left in it."""


class Spot(msgspec.Struct, frozen=True):
    """A change with its bytes resolved and the names that it uses beside its path."""

    path: str
    temp: str
    aside: str
    pre_sha256: str | None
    post_sha256: str | None
    pre: bytes | None
    post: bytes | None
    mode: int | None

    @property
    def only_mode(self) -> bool:
        return self.pre_sha256 == self.post_sha256

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)


def temp_name(op: OpId, index: int, change: Change) -> str:
    """Return the name of the file beside the target that holds the new bytes; `.old` for what was moved away.

    It derives from the record alone, so that recovery finds it; other sessions' edits get other names.
    """
    of = "\n".join((op, change.path, change.pre_sha256 or "", change.post_sha256 or ""))
    mark = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._") else "_" for char in op)
    return f"{PREFIX}{plain[-40:]}-{index}-{mark}.tmp"


def spots_of(op: OpId, changes: tuple[Change, ...]) -> list[Spot]:
    """Resolve changes in the order of their record; names depend on it."""
    spots = []
    for index, change in enumerate(changes):
        temp = os.path.join(os.path.dirname(change.path), temp_name(op, index, change))
        spots.append(
            Spot(
                path=change.path,
                temp=temp,
                aside=temp.removesuffix(".tmp") + ".old",
                pre_sha256=change.pre_sha256,
                post_sha256=change.post_sha256,
                pre=_bytes(change.pre, change.pre_sha256),
                post=_bytes(change.post, change.post_sha256),
                mode=change.mode,
            )
        )
    return spots


def _bytes(text: object, sha256: str | None) -> bytes | None:
    """Return a side's bytes, None when they are not given or are not the ones that were approved."""
    if not isinstance(text, str):
        return None
    data = text.encode("utf-8", "surrogateescape")
    return data if hashlib.sha256(data).hexdigest() == sha256 else None


def state(spot: Spot) -> str:
    """Say what the path holds: before, done, begun (our own overwriting, cut off), or other."""
    now = digest(spot.path)
    if spot.only_mode:
        return _mode_state(spot) if now == spot.pre_sha256 else "other"
    if now == spot.post_sha256:
        return "done"
    if now == spot.pre_sha256:
        return "before"
    return "begun" if _is_begun(spot) else "other"


def _mode_state(spot: Spot) -> str:
    if spot.mode is None:
        return "before"
    return "done" if stat.S_IMODE(os.lstat(spot.path).st_mode) == spot.mode else "before"


def _is_begun(spot: Spot) -> bool:
    """Whether the path holds a mix of old and new bytes, and is a file that we would have overwritten."""
    if spot.pre is None or spot.post is None or os.path.lexists(spot.temp) or os.path.lexists(spot.aside):
        return False
    try:
        status, folder = os.lstat(spot.path), os.stat(spot.folder)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max(len(spot.pre), len(spot.post)):
            return False
        with open(spot.path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    overwritten = (
        status.st_nlink > 1
        or (status.st_uid, status.st_dev) != (os.geteuid(), folder.st_dev)
        or status.st_gid not in {os.getegid(), *os.getgroups()}
        or not os.access(spot.folder, os.W_OK)
        or _has_attributes(spot.path)
    )
    return overwritten and is_mix(data, spot.pre, spot.post)


def _has_attributes(path: str) -> bool:
    try:
        return bool(os.listxattr(path))
    except (OSError, AttributeError):  # macOS: Python has no listxattr there, and copying them does not fail
        return False


def is_mix(data: bytes, pre: bytes, post: bytes) -> bool:
    """Whether `data` can be what a cut-off overwriting of `pre` by `post` leaves; a hole that grew reads as zeros."""
    if not min(len(pre), len(post)) <= len(data) <= max(len(pre), len(post)):
        return False
    for start in range(0, len(data), BLOCK):
        block = data[start : start + BLOCK]
        stop = start + len(block)
        if block in {pre[start:stop], post[start:stop]}:
            continue
        for at, byte in enumerate(block, start):
            old = pre[at] if at < len(pre) else 0
            if byte not in {old, post[at] if at < len(post) else old}:
                return False
    return True


def removable(spot: Spot, name: str) -> bool:
    """Whether a file beside the path holds nothing but what the log has too, or our own unfinished writing."""
    found = digest(name)
    if found in {spot.pre_sha256, spot.post_sha256}:
        return True
    try:
        if not stat.S_ISREG(os.lstat(name).st_mode):
            return False
        with open(name, "rb") as file:
            data = file.read()
    except OSError:
        return False
    return any(
        side is not None and len(data) <= len(side) and is_mix(data, b"", side) for side in (spot.pre, spot.post)
    )
