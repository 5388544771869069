"""The event table: every type a log may hold, with its class of durability and what recovery does with it.

Records on disk are for ever: names and meanings here never change; a changed shape is a new version with an upcaster.
"""

from __future__ import annotations

from pieria.core.events import calls, files, model, reserved, session, turns
from pieria.core.events.row import Row

TABLE: tuple[Row, ...] = session.TABLE + turns.TABLE + model.TABLE + calls.TABLE + files.TABLE
RESERVED: dict[str, str] = reserved.RESERVED
