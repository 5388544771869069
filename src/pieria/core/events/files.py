"""Events of files that changed without us."""

from __future__ import annotations

from pieria.core.events.row import Event, Row
from pieria.core.values import FileHash


class FilesChanged(Event, frozen=True, gc=False):
    """Files that an agent had touched no longer have the content it knew; `files` holds what they are now."""

    files: tuple[FileHash, ...]
    more: int = 0


TABLE = (Row("files.changed", FilesChanged, ("recovery",), "the next request carries it"),)
