"""The port `Files` on a real disk. Blocking; holds nothing but its settings, so any number of threads may use it.

What makes edits is imported with the first one: a session's start does not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pieria.core.ports import Applied, FileImage, FileProblem, Place
from pieria.core.values import Change, OpId, TouchedPath
from pieria.workspace import paths, reading
from pieria.workspace.disk import Disk


class DiskFiles:
    """`own_folders`: the person's config and state folders of this program, which agents must not change."""

    def __init__(self, *, own_folders: Sequence[str] = (), disk: Disk | None = None) -> None:
        self._own_folders = tuple(own_folders)
        self._disk = disk or Disk()

    def touch(self, given: str, place: Place) -> TouchedPath:
        return paths.touch(given, place, own_folders=self._own_folders)

    def read(self, real: str, *, limit: int) -> FileImage:
        return reading.read(real, limit=limit)

    def hash(self, real: str) -> str | None:
        """Return a regular file's sha256, None when there is none; FileProblem when it can't be read."""
        found = reading.digest(real)
        if found == reading.UNREADABLE:
            raise FileProblem("denied", f"The system does not let us read {real}.")
        return None if found == reading.NOT_A_FILE else found

    def apply(self, op: OpId, changes: Sequence[Change]) -> Applied:
        from pieria.workspace import edits

        return edits.apply(self._disk, op, changes)

    def recover(self, op: OpId, changes: Sequence[Change]) -> Applied:
        from pieria.workspace import edit_recovery

        return edit_recovery.recover(self._disk, op, changes)
