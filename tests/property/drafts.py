"""Any value of any event class, from the annotations alone: a new event is covered on the day it is in the table."""

from __future__ import annotations

import types
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from pieria.core.events import TABLE
from pieria.core.record import Draft
from pieria.core.values import Blob, Message, OpId

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["\u2028\u0085\n\r\x00\x7f", '"\\/', "e\u0301", "\U0010ffff", "\N{PILE OF POO}"]
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(-(2**63), 2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    types.NoneType: st.none(),
}
AGENTS = st.sampled_from(["a0", "a1", "nobody", "person", "session"])
OPS = st.none() | st.builds("{}.{}".format, AGENTS, st.integers(0, 9)).map(OpId)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """A strategy for an annotation of an event."""
    if isinstance(kind, NewType):
        return values(kind.__supertype__)
    if kind in SCALARS:
        return SCALARS[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return st.one_of(*map(values, args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        assert args[1] is ..., kind
        return st.lists(values(args[0]), max_size=2).map(tuple)
    assert issubclass(kind, msgspec.Struct), kind
    hints = get_type_hints(kind)
    given = {field.name: values(hints[field.name]) for field in msgspec.structs.fields(kind)}
    return st.fixed_dictionaries(given).map(lambda fields: kind(**fields))


EVENTS = {row.cls: values(row.cls) for row in TABLE}
MESSAGES = values(Message)


def drafts() -> st.SearchStrategy[Draft]:
    """Any event of anyone, true to its type and to nothing else."""
    return st.sampled_from([row.cls for row in TABLE]).flatmap(
        lambda cls: st.builds(
            Draft,
            AGENTS,
            EVENTS[cls],
            op=OPS,
            cause=st.none() | st.integers(0, 99),
            basis=st.none() | st.integers(0, 99),
        )
    )


__all__ = ["EVENTS", "MESSAGES", "Blob", "drafts"]
