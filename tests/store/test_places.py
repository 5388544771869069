"""Which fields of an event may be stowed follows from how they are declared."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from pieria.core.events import TABLE
from pieria.core.values import Blob
from pieria.store.stow import _places


def evaluated(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    if cls is Blob:
        return ()
    return tuple(field.name for field in msgspec.structs.fields(cls) if leads_on(field.type))


def leads_on(hint: object) -> bool:
    if hint is float or hint is Blob:
        return True
    if arguments := get_args(hint):
        return any(map(leads_on, arguments))
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct) and bool(evaluated(hint))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_annotations_as_written_say_what_their_evaluation_says(row) -> None:
    assert _places(row.cls) == evaluated(row.cls)
