"""A plain adapter of the port Files on the real disk: no crash safety, only what tools need to be tried."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from pieria.core.ports import Applied, FileImage, FileProblem, Place
from pieria.core.values import Change, FileHash, OpId, TouchedPath


class RealFiles:
    """Reads and writes in one go; `.git` is guarded, `.env` is secret."""

    def touch(self, given: str, place: Place) -> TouchedPath:
        if "\0" in given or any(len(os.fsencode(part)) > 255 for part in given.split("/")):
            raise FileProblem("refused", "The path can't be one: too long, or with NUL.")
        real = os.path.realpath(os.path.join(place.root, os.path.expanduser(given)))
        roots = (place.root, *place.add_dirs)
        inside = any(real == root or real.startswith(root + "/") for root in roots)
        parts = real.split("/")
        return TouchedPath(given=given, real=real, inside=inside, guarded=".git" in parts, secret=parts[-1] == ".env")

    def read(self, real: str, *, limit: int) -> FileImage:
        path = Path(real)
        if path.is_dir():
            raise FileProblem("folder", f"{real} is a folder.")
        if not path.exists():
            raise FileProblem("absent", f"{real} does not exist.")
        if not path.is_file():
            raise FileProblem("special", f"{real} is no regular file.")
        if path.stat().st_size > limit:
            raise FileProblem("too_big", f"{real} is too big.")
        data = path.read_bytes()
        return FileImage(path=real, data=data, sha256=sha256(data).hexdigest(), mode=path.stat().st_mode & 0o7777)

    def hash(self, real: str) -> str | None:
        path = Path(real)
        return sha256(path.read_bytes()).hexdigest() if path.is_file() else None

    def apply(self, op: OpId, changes: Sequence[Change]) -> Applied:
        if any(self.hash(change.path) != change.pre_sha256 for change in changes):
            return Applied(status="conflict")
        for change in changes:
            assert isinstance(change.post, str)
            path = Path(change.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(change.post.encode("utf-8", "surrogateescape"))
        return Applied("done", tuple(FileHash(change.path, self.hash(change.path)) for change in changes))

    def recover(self, op: OpId, changes: Sequence[Change]) -> Applied:
        return self.apply(op, changes)
