"""Replacing text in a file's bytes: all edits or none, each at one place that cannot be mistaken."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from pieria.core.textedit.encoding import DAMAGED, UNKNOWN, Decoded, decode, encode
from pieria.core.textedit.matching import Place, apart, exact, line_number, nearest, tolerant
from pieria.core.values import Value

LISTED = 20


class Edit(Value, frozen=True, gc=False):
    """Replace `old` by `new`, both as a model writes them: whatever the file's line endings, LF will do."""

    old: str
    new: str
    replace_all: bool = False


class Spliced(Value, frozen=True, gc=False):
    """The new bytes. `notes` say what was not plain: other white space, or an edit that was there already."""

    data: bytes
    notes: tuple[str, ...] = ()
    replaced: int = 0


class Mismatch(Value, frozen=True, gc=False):
    """Why nothing was changed, in words for the model. `edit` counts from 0, None for the file as a whole."""

    message: str
    edit: int | None = None


class Found(Value, frozen=True, gc=False):
    """Where one edit goes in the text with LF endings."""

    places: tuple[Place, ...] = ()
    note: str = ""


def splice(data: bytes, edits: Sequence[Edit]) -> Spliced | Mismatch:
    """Apply edits to the file as it is now: each is matched against `data` itself, and no two may overlap."""
    decoded = decode(data)
    if decoded.encoding == DAMAGED:
        return Mismatch("The file has the mark of UTF-16 or UTF-32 but is not valid as such: not edited.")
    if not edits:
        return Mismatch("No edit was given.")
    text, marks = _fed(decoded)
    places: list[tuple[int, int, int, str]] = []
    notes = []
    for index, edit in enumerate(edits):
        found = _find(text, _plain(edit, decoded))
        if isinstance(found, str):
            return Mismatch(_numbered(found, index, edits), index)
        places += [(place.start, place.stop, index, place.new or "") for place in found.places]
        notes += [_numbered(found.note, index, edits)] if found.note else []
    places.sort()
    if clash := _overlap(text, places):
        return clash
    pieces, at = [], 0
    for place in places:
        start, stop, new = _trimmed(text, place)
        if refusal := _unfit(new, decoded):
            return Mismatch(_numbered(refusal, place[2], edits), place[2])
        begin, end = _original(start, marks), _original(stop, marks)
        pieces += [decoded.text[at:begin], _ended(new, decoded, begin=begin, end=end)]
        at = end
    return Spliced(encode("".join([*pieces, decoded.text[at:]]), decoded), tuple(notes), len(places))


def _overlap(text: str, places: list[tuple[int, int, int, str]]) -> Mismatch | None:
    for before, after in pairwise(places):
        if after[0] < before[1]:
            first, second = sorted((before[2] + 1, after[2] + 1))
            where = f"at line {line_number(text, after[0])}"
            words = f"Edits {first} and {second} overlap {where}: make them one. Nothing was changed."
            return Mismatch(words, second - 1)
    return None


def _numbered(words: str, index: int, edits: Sequence[Edit]) -> str:
    return f"Edit {index + 1}: {words}" if len(edits) > 1 else words


def _feed(text: str) -> str:
    return text.replace("\r\n", "\n")


def _plain(edit: Edit, decoded: Decoded) -> Edit:
    """Write an edit's texts as the file's text is matched: LF endings, no byte-order mark."""
    old, new = _feed(edit.old), _feed(edit.new)
    if decoded.bom:
        old, new = old.removeprefix("\ufeff"), new.removeprefix("\ufeff")
    if decoded.newline == "\r":
        old, new = old.replace("\r", "\n"), new.replace("\r", "\n")
    return Edit(old, new, edit.replace_all)


def _fed(decoded: Decoded) -> tuple[str, list[int]]:
    """Return the text with LF endings, and the offsets in it of those that are CR LF in the file."""
    if decoded.newline == "\r":
        return decoded.text.replace("\r", "\n"), []
    marks: list[int] = []
    at = decoded.text.find("\r\n")
    while at >= 0:
        marks.append(at - len(marks))
        at = decoded.text.find("\r\n", at + 2)
    return _feed(decoded.text), marks


def _original(offset: int, marks: list[int]) -> int:
    """Return where an offset into the text with LF endings is in the file's own text."""
    return offset + bisect_left(marks, offset)


def _find(text: str, edit: Edit) -> Found | str:
    """Return where an edit goes, or why it goes nowhere."""
    old, new = edit.old, edit.new
    if old == new:
        return "The old and the new text are the same: nothing to change."
    if not old:
        if text:
            return "The old text is empty. Give the text to replace, with enough of it to be found once."
        return Found((Place(0, 0, new),))
    if edit.replace_all:
        starts = apart(text, old)
        if starts:
            return Found(tuple(Place(start, start + len(old), new) for start in starts))
    else:
        starts = exact(text, old, limit=LISTED + 1)
        if len(starts) > 1:
            return _several(text, starts, "")
        if starts:
            return Found((Place(starts[0], starts[0] + len(old), new),), _doubled(text, old, new, starts[0]))
    return _inexact(text, old, new)


def _inexact(text: str, old: str, new: str) -> Found | str:
    """Look for an edit whose old text is not there as given."""
    there = exact(text, new, limit=2) if len(new.strip()) > 2 else []
    places = tolerant(text, old, new)
    apply_there = len(places) == 1 and not any(at < places[0].stop and places[0].start < at + len(new) for at in there)
    if apply_there and places[0].new is not None:
        place = places[0]
        line = line_number(text, place.start)
        if text[place.start : place.stop] == place.new:
            return Found((), f"Already applied: line {line} reads so. Nothing to do.")
        words = f"Matched at line {line} with other white space; the new text was indented like the file."
        return Found((place,), words)
    if len(there) == 1:
        line = line_number(text, there[0])
        words = f"Already applied: the new text is at line {line} and the old text is gone. Nothing to do."
        return Found((), words)
    if len(places) > 1:
        return _several(text, [place.start for place in places], " but for white space")
    words = "The old text is not in the file. Nothing was changed."
    return " ".join(filter(None, (words, nearest(text, old))))


def _several(text: str, starts: list[int], how: str) -> str:
    lines = ", ".join(str(line_number(text, start)) for start in starts[:LISTED])
    more = " and more" if len(starts) > LISTED else ""
    return (
        f"The old text is in the file at several places{how}: lines {lines}{more}. Nothing was changed. "
        "Give more of the text around the right one, or ask to replace all."
    )


def _doubled(text: str, old: str, new: str, start: int) -> str:
    """Warn when the place read like the new text already: an edit sent twice adds its lines twice."""
    inside = new.find(old)
    if inside < 0:
        return ""
    begin = start - inside
    if begin < 0 or text[begin : begin + len(new)] != new:
        return ""
    line = line_number(text, begin)
    return f"Line {line} read like the new text before: what was added may be there twice now."


def _trimmed(text: str, place: tuple[int, int, int, str]) -> tuple[int, int, str]:
    """Leave out what the old and the new text share at both ends: those bytes are not touched."""
    start, stop, _, new = place
    head = 0
    while head < len(new) and start + head < stop and text[start + head] == new[head]:
        head += 1
    start, new = start + head, new[head:]
    tail = 0
    while tail < len(new) and stop - tail > start and text[stop - 1 - tail] == new[-1 - tail]:
        tail += 1
    return start, stop - tail, new[: len(new) - tail]


def _unfit(new: str, decoded: Decoded) -> str:
    """Return why the new text cannot be written in the file's encoding; "" when it can."""
    if decoded.encoding == UNKNOWN:
        if new.isascii():
            return ""
        return (
            "The file has bytes that are not UTF-8, so only ASCII can be put into it: its encoding is unknown. "
            "Nothing was changed."
        )
    try:
        new.encode(decoded.encoding)
    except UnicodeEncodeError as error:
        code = ord(new[error.start])
        return f"The new text has U+{code:04X}, which no file can hold. Nothing was changed."
    return ""


def _ended(new: str, decoded: Decoded, *, begin: int, end: int) -> str:
    """Give the line ends of inserted text the form that the neighbourhood has."""
    if "\n" not in new:
        return new
    text = decoded.text
    replaced = _ends(text[begin:end], decoded.newline)
    parts = new.split("\n")
    if len(replaced) == len(parts) - 1:
        return "".join(part + ending for part, ending in zip(parts, [*replaced, ""], strict=True))
    before, after = text.rfind("\n", 0, begin), text.find("\n", end)
    nearby = replaced[:1] or _ends(text[max(0, before - 1) : before + 1], decoded.newline)
    nearby = nearby or _ends(text[max(end, after - 1) : after + 1], decoded.newline)
    return (nearby or [decoded.newline])[0].join(parts)


def _ends(text: str, newline: str) -> list[str]:
    """Return the endings of the lines of a text, in order."""
    if newline == "\r":
        return ["\r"] * text.count("\r")
    return ["\r\n" if line.endswith("\r") else "\n" for line in text.split("\n")[:-1]]
