"""Edits to apply, and disks on which a chosen system call fails or is the last one."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pieria.core.values import Change, OpId
from pieria.workspace.disk import Disk

EDIT = OpId("lead.12")
CALLS = (
    *("open", "write", "truncate", "fsync", "chown", "chmod", "copy_attributes", "exchange", "replace", "link"),
    *("move", "unlink", "mkdir", "rmdir", "sync_folder"),
)


class Killed(BaseException):
    """Stands for the death of the process: no `except OSError` sees it."""


class CountingDisk(Disk):
    """Counts calls; at call `stop` (from 0), before it or after half of it, does what it is told to."""

    def __init__(self, stop: int | None = None, *, then: Callable[[], None] | None = None) -> None:
        self.count = 0
        self.log: list[str] = []
        self.stop = stop
        self.then = then or _kill

    def fsync(self, fd: int) -> None:
        """Counted, not done: only a power cut could tell, and thousands of them would take minutes."""

    def __getattribute__(self, name: str) -> Any:
        call = super().__getattribute__(name)
        if name not in CALLS:
            return call

        def counted(*args: Any) -> Any:
            index, self.count = self.count, self.count + 1
            self.log.append(name)
            if index == self.stop:
                if name == "write" and len(args[1]) > 1:
                    call(args[0], args[1][: len(args[1]) // 2])
                self.then()
            return call(*args)

        return counted


def _kill() -> None:
    raise Killed


def failing(number: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


class NoRenameat2(CountingDisk):
    """A file system that can't exchange names; `links` False: nor give a file a second one."""

    links = True

    def exchange(self, first: str, second: str) -> None:
        raise OSError(errno.ENOTSUP, "not supported", first)

    def link(self, source: str, target: str) -> None:
        if not self.links:
            raise OSError(errno.EPERM, "not permitted", source)
        super().link(source, target)


class NoLinksEither(NoRenameat2):
    links = False


def sha(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def change(path: Path, pre: bytes | None, post: bytes | None, mode: int | None = None) -> Change:
    return Change(path=str(path), pre_sha256=sha(pre), post_sha256=sha(post), mode=mode, pre=text(pre), post=text(post))


def contents(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return every file below a folder with content, mode and number of names; empty folders don't count."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            status = path.lstat()
            data = bytes(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = (data, stat.S_IMODE(status.st_mode), status.st_nlink)
    return found


OLD = b"one\n" + b"caf\xe9 \x00\n" * 3000 + b"end\n"
NEW = b"uno\n" + b"caf\xe9 \x01\n" * 3500 + b"fin\n"
SHORT = b"short \xff\n"


def _write(folder: Path) -> list[Change]:
    (folder / "a.txt").write_bytes(OLD)
    (folder / "a.txt").chmod(0o750)
    return [change(folder / "a.txt", OLD, NEW)]


def _create(folder: Path) -> list[Change]:
    return [change(folder / "new" / "deep" / "b.txt", None, NEW, 0o640)]


def _delete(folder: Path) -> list[Change]:
    (folder / "a.txt").write_bytes(OLD)
    return [change(folder / "a.txt", OLD, None)]


def _hard_link(folder: Path) -> list[Change]:
    (folder / "a.txt").write_bytes(OLD)
    os.link(folder / "a.txt", folder / "twin.txt")
    return [change(folder / "a.txt", OLD, NEW)]


def _hard_link_shrinks(folder: Path) -> list[Change]:
    (folder / "a.txt").write_bytes(NEW)
    os.link(folder / "a.txt", folder / "twin.txt")
    return [change(folder / "a.txt", NEW, SHORT)]


def _hard_link_and_mode(folder: Path) -> list[Change]:
    (folder / "a.txt").write_bytes(OLD)
    os.link(folder / "a.txt", folder / "twin.txt")
    return [change(folder / "a.txt", OLD, NEW, 0o600)]


def _modes(folder: Path) -> list[Change]:
    (folder / "a.sh").write_bytes(SHORT)
    (folder / "b.sh").write_bytes(SHORT)
    return [change(folder / "a.sh", SHORT, SHORT, 0o755), change(folder / "b.sh", SHORT, SHORT, 0o700)]


def _empty(folder: Path) -> list[Change]:
    (folder / "a.txt").write_bytes(OLD)
    (folder / "e.txt").write_bytes(b"")
    return [
        change(folder / "a.txt", OLD, b""),
        change(folder / "e.txt", b"", SHORT),
        change(folder / "n.txt", None, b""),
    ]


def _many(folder: Path) -> list[Change]:
    (folder / "sub").mkdir()
    for name in ("a.txt", "sub/b.txt", "gone.txt", "linked.txt", "mode.sh"):
        (folder / name).write_bytes(OLD + name.encode())
    os.link(folder / "linked.txt", folder / "twin.txt")
    (folder / "untouched.txt").write_bytes(OLD)
    return [
        change(folder / "mode.sh", OLD + b"mode.sh", OLD + b"mode.sh", 0o755),
        change(folder / "a.txt", OLD + b"a.txt", NEW),
        change(folder / "gone.txt", OLD + b"gone.txt", None),
        change(folder / "moved" / "gone.txt", None, OLD + b"gone.txt"),
        change(folder / "linked.txt", OLD + b"linked.txt", SHORT),
        change(folder / "sub" / "b.txt", OLD + b"sub/b.txt", SHORT, 0o600),
    ]


CASES: dict[str, Callable[[Path], list[Change]]] = {
    "write": _write,
    "create": _create,
    "delete": _delete,
    "hard link": _hard_link,
    "hard link that shrinks": _hard_link_shrinks,
    "hard link and mode": _hard_link_and_mode,
    "modes": _modes,
    "empty": _empty,
    "many": _many,
}
DISKS: dict[str, type[CountingDisk]] = {"real": CountingDisk, "no exchange": NoRenameat2, "no links": NoLinksEither}
