"""A call's arguments as its tool gets them: parsed first, then known secrets put back into every string of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pieria.core.markers import named_secrets
from pieria.core.ports import Secrets, Tool
from pieria.core.values import Call
from pieria.runtime.world import World


class Fitted(msgspec.Struct, frozen=True):
    """Arguments, and the names of secrets whose values stand in them now."""

    arguments: Mapping[str, object]
    secrets: tuple[str, ...]


def fitted(world: World, call: Call, tool: Tool) -> Fitted | str:
    """Return the arguments, or why they can't be used.

    Markers are looked for in the parsed strings: in JSON text one can be spelt in many ways. Only commands and new text
    of files need values; paths, patterns and notes keep their markers.
    """
    parameters = tool.spec.parameters if isinstance(tool.spec.parameters, str) else ""
    arguments = world.parse(world.texts.text(call.arguments), parameters)
    if isinstance(arguments, str):
        return arguments
    if tool.spec.access not in ("shell", "edit"):
        return Fitted(arguments, ())
    found: dict[str, None] = {}
    revealed = {name: _revealed(value, world.secrets, found, name) for name, value in arguments.items()}
    if own := [name for name in found if name in world.own_keys]:
        return f"<<secret:{own[0]}>> is a key of this program itself: no call can use it."
    return Fitted(revealed, tuple(found))


def _revealed(value: object, secrets: Secrets, found: dict[str, None], name: str) -> object:
    match value:
        case str() if name == "path":
            return value
        case str():
            found.update(dict.fromkeys(named_secrets(value)))
            return secrets.reveal(value)
        case list():
            return [_revealed(each, secrets, found, name) for each in value]
        case dict():
            return {key: _revealed(each, secrets, found, key) for key, each in value.items()}
        case _:
            return value
