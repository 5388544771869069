"""`todo`: an agent's own list of what to do. It touches nothing; the list lives in the call's result."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pieria.core.ports import Place
from pieria.core.values import Details, Examined, Todo, ToolResult, ToolSpec
from pieria.tools.base import ChangesNothing, StartsNothing, fingerprint, refused
from pieria.tools.specs import TO_DO as SPEC

ITEMS = 100
CHARS = 500


class ToDo(ChangesNothing, StartsNothing):
    """The tool `todo`."""

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        items = _items(arguments)
        parts = [part for item in items for part in (item.text, item.state)]
        if len(items) > ITEMS or any(len(item.text) > CHARS for item in items):
            words = f"A list has at most {ITEMS} items of {CHARS} characters: merge or shorten them."
            return refused(SPEC, words, parts)
        if any(not item.text.strip() for item in items):
            return refused(SPEC, "An item has no text.", parts)
        return Examined(access="note", action=fingerprint(SPEC, parts))

    def run(self, facts: Examined, arguments: Mapping[str, object], place: Place) -> ToolResult:
        items = _items(arguments)
        done = sum(item.state == "done" for item in items)
        doing = [item.text for item in items if item.state == "doing"]
        now = f"; doing: {', '.join(doing)}" if doing else ""
        text = f"{done} of {len(items)} done{now}" if items else "The list is empty."
        return ToolResult(text=text if len(text) <= CHARS else f"{text[:CHARS]}...", details=Details(todo=items))


def _items(arguments: Mapping[str, object]) -> tuple[Todo, ...]:
    return msgspec.convert(arguments["items"], tuple[Todo, ...])
