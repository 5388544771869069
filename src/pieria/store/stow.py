"""Makes an event fit to be a line: long and non-UTF-8 texts leave it for blob records, and nothing raises.

Invariant: only places declared `Text` are stowed; what is returned encodes, and decodes to the same value.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from functools import cache
from inspect import get_annotations
from math import isfinite
from typing import TypeVar

import msgspec

from pieria.core.events.row import Event
from pieria.core.events.session import BlobStored
from pieria.core.values import Blob

PART_BYTES = 160_000
"""Bytes of content in one blob record: JSON may spend six on one, and a line has a limit."""

SURE = 64
"""An ASCII text of at most this length is never stowed."""

Keep = Callable[[str], str | Blob]
S = TypeVar("S", bound=msgspec.Struct)


def stow(event: Event, keep: Keep) -> Event:
    """Return the event with each declared text replaced by what `keep` makes of it; itself if nothing changes."""
    return _struct(event, keep)


def blobs_of(event: msgspec.Struct) -> Iterator[Blob]:
    """Yield every blob that an event cites."""
    for name in _places(type(event)):
        yield from _cited(getattr(event, name))


def in_plain_words(value: object) -> object:
    """Return the value with lone surrogates spelt out, in every string: for places that can't cite a blob."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, tuple):
        return tuple(in_plain_words(each) for each in value)
    if isinstance(value, msgspec.Struct):
        fields = {name: in_plain_words(getattr(value, name)) for name in value.__struct_fields__}
        return type(value)(**fields)
    return value


def to_bytes(text: str) -> bytes:
    """Encode any string. Escaped bytes come out as they were; other lone surrogates as their three bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _to_bytes_slowly(text)


def parts(data: bytes, digest: str) -> list[BlobStored]:
    """Cut a content of this sha256 into blob records' data: between characters when it is UTF-8, else as base64."""
    try:
        data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        cuts = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
        return [
            BlobStored(part=i, parts=len(cuts), sha256=digest, len=len(data), base64=b64encode(cut).decode())
            for i, cut in enumerate(cuts)
        ]
    texts = list(_characters(data))
    return [BlobStored(part=i, parts=len(texts), sha256=digest, len=len(data), text=cut) for i, cut in enumerate(texts)]


def _characters(data: bytes) -> Iterator[str]:
    start = 0
    while start < len(data) or start == 0:
        end = min(start + PART_BYTES, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end].decode()
        if end == len(data):
            return
        start = end


def _to_bytes_slowly(text: str) -> bytes:
    import re

    pieces = re.split("([\ud800-\udc7f\udd00-\udfff]+)", text)
    return b"".join(
        piece.encode("utf-8", "surrogatepass" if odd else "surrogateescape")
        for piece, odd in zip(pieces, [False, True] * len(pieces), strict=False)
    )


def _struct(value: S, keep: Keep) -> S:
    changes: dict[str, object] | None = None
    for name in _places(type(value)):
        old = getattr(value, name)
        kind = type(old)
        if old is None or (kind is str and len(old) <= SURE and old.isascii()):
            continue  # most are
        new = _walk(old, keep)
        if new is not old:
            changes = changes or {}
            changes[name] = new
    return value if changes is None else msgspec.structs.replace(value, **changes)


def _walk(value: object, keep: Keep) -> object:
    """Reached only through places that may hold a text or a float."""
    if isinstance(value, str):
        return keep(value)
    if isinstance(value, tuple):
        fresh = tuple([_walk(each, keep) for each in value])
        return value if all(map(operator.is_, value, fresh)) else fresh
    if isinstance(value, float):
        return value if isfinite(value) else _finite(value)
    if isinstance(value, msgspec.Struct):
        return _struct(value, keep)
    return value


def _finite(value: float) -> float:
    """JSON knows no infinity: a line with it could never be read back."""
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        return 0.0
    return sys.float_info.max if value > 0 else -sys.float_info.max


def _cited(value: object) -> Iterator[Blob]:
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _cited(each)
    elif isinstance(value, msgspec.Struct):
        yield from blobs_of(value)


@cache
def _places(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Name the fields of a class through which a declared text (or a float) can be reached.

    Annotations are read as they are written: to evaluate them takes milliseconds that the start does not have.
    """
    if cls is Blob:
        return ()
    found: set[str] = set()
    for owner in cls.__mro__:
        scope = vars(sys.modules[owner.__module__])
        hints = get_annotations(owner)
        found.update(name for name, hint in hints.items() if _leads_on(str(hint), scope))
    return tuple(name for name in cls.__struct_fields__ if name in found)


def _leads_on(hint: str, scope: dict[str, object]) -> bool:
    for word in "".join(char if char.isalnum() or char == "_" else " " for char in hint).split():
        if word in {"Text", "Blob", "float"}:
            return True
        named = scope.get(word)
        if isinstance(named, type) and issubclass(named, msgspec.Struct) and _places(named):
            return True
    return False
