"""Names that later features will record: settled now, since a log is for ever. Not built: such a record is unknown."""

from __future__ import annotations

RESERVED: dict[str, str] = {}
