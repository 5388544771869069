"""Where a model's text stands in a file: exactly, by lines with other white space, or nearest to it.

All texts here have LF endings; places are offsets into such a text.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from pieria.core.values import Value

SEARCHED_LINES = 5000
SHOWN = 120


class Place(Value, frozen=True, gc=False):
    """A range of a text, and what is to stand there instead; None when that cannot be told."""

    start: int
    stop: int
    new: str | None


def exact(text: str, old: str, *, limit: int) -> list[int]:
    """Return the first offsets at which `old` begins, overlapping ones too: two of them are two places."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < limit:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def apart(text: str, old: str) -> list[int]:
    """Return every offset at which `old` begins, none inside another."""
    found, at = [], text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + len(old))
    return found


def line_number(text: str, offset: int) -> int:
    """Return the number, from 1, of the line at an offset."""
    return text.count("\n", 0, offset) + 1


def tolerant(text: str, old: str, new: str) -> list[Place]:
    """Find whole lines that differ from `old` in indentation and trailing blanks alone.

    `new` comes back indented as the file does it, or as None where that cannot be told for sure.
    """
    wanted, lines = old.split("\n"), text.split("\n")
    open_end = wanted[-1] != "" or len(wanted) == 1
    if not open_end:
        wanted.pop()
    bare = [line.strip(" \t") for line in wanted]
    if not any(bare):
        return []
    stripped = [line.strip(" \t") for line in lines]
    anchor = next(index for index, line in enumerate(bare) if line)
    offsets = _offsets(lines)
    places = []
    for index, line in enumerate(stripped):
        first = index - anchor
        if line != bare[anchor] or first < 0 or stripped[first : first + len(bare)] != bare:
            continue
        found = lines[first : first + len(bare)]
        reindented = _reindented(wanted, found, new, _unit(lines))
        stop = offsets[first + len(bare) - 1] + len(found[-1])
        if not open_end and stop < len(text):
            stop += 1
        elif not open_end and reindented:
            reindented = reindented.removesuffix("\n")
        places.append(Place(offsets[first], stop, reindented))
    return places


def _offsets(lines: list[str]) -> list[int]:
    offsets, at = [], 0
    for line in lines:
        offsets.append(at)
        at += len(line) + 1
    return offsets


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(lines: list[str]) -> str:
    """Return one level of a file's indentation: a tab, or so many spaces."""
    indents = [_indent(line) for line in lines if line.strip(" \t")]
    tabs = sum(indent.startswith("\t") for indent in indents)
    if tabs > sum(indent.startswith(" ") for indent in indents):
        return "\t"
    deeper = [len(after) - len(before) for before, after in pairwise(indents)]
    steps = [step for step in deeper if 1 < step <= 8]
    return " " * max(sorted(set(steps)), key=steps.count, default=4)


def _reindented(wanted: list[str], found: list[str], new: str, unit: str) -> str | None:
    """Return `new` indented like the lines that were found; None when the two do not correspond."""
    both = [(_indent(mine), _indent(theirs)) for mine, theirs in zip(wanted, found, strict=True) if mine.strip(" \t")]
    pairs = dict(both)
    ordered = sorted(pairs, key=len)
    if any(pairs[mine] != theirs for mine, theirs in both):
        return None
    for before, after in pairwise(ordered):
        if len(before) == len(after) or len(pairs[before]) >= len(pairs[after]):
            return None
    step = _step(ordered, pairs, unit)
    lines = []
    for line in new.split("\n"):
        if not line.strip(" \t"):
            lines.append("")
            continue
        indent = _indent(line)
        shifted = pairs[indent] if indent in pairs else _shifted(indent, ordered, pairs, unit, step)
        if shifted is None:
            return None
        lines.append(shifted + line[len(indent) :])
    return "\n".join(lines)


def _step(ordered: list[str], pairs: dict[str, str], unit: str) -> int:
    """Return how many characters of the model's indentation are one unit of the file's."""
    if len(ordered) > 1:
        mine = len(ordered[-1]) - len(ordered[0])
        theirs = len(pairs[ordered[-1]]) - len(pairs[ordered[0]])
        if theirs % len(unit) == 0 and mine % (theirs // len(unit)) == 0:
            return mine // (theirs // len(unit))
    only = ordered[-1]
    if "\t" in only:
        return 1
    levels = len(pairs[only]) // len(unit)
    if unit == "\t" and levels and len(only) in {levels * width for width in (2, 3, 4, 8)}:
        return len(only) // levels
    return 4 if unit == "\t" else len(unit)


def _shifted(indent: str, ordered: list[str], pairs: dict[str, str], unit: str, step: int) -> str | None:
    """Move an indentation that no matched line has: by whole units from the nearest one that has."""
    at = bisect_right([len(known) for known in ordered], len(indent))
    base = ordered[max(0, at - 1)]
    if "\t" in indent + base and " " in indent + base:
        return None
    away = len(indent) - len(base)
    levels, rest = divmod(abs(away), step)
    if away > 0:
        return pairs[base] + unit * levels + " " * rest
    if unit != "\t" and step == len(unit):
        cut = " " * -away
    else:
        cut = unit * levels
        if rest:
            return None
    if not pairs[base].endswith(cut):
        return None
    return pairs[base][: len(pairs[base]) - len(cut)]


def nearest(text: str, old: str) -> str:
    """Say where a file comes nearest to `old`, and what differs first there; "" when nothing is like it."""
    lines, wanted = text.split("\n"), old.split("\n")
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    number = _like(lines, wanted[anchor].strip())
    if number is None:
        return ""
    first = max(0, number - anchor)
    for mine, (index, theirs) in zip(wanted, list(enumerate(lines))[first:], strict=False):
        if mine != theirs and (mine.strip() or theirs.strip()):
            there = f"Nearest is line {index + 1}, which reads {shown(theirs)}"
            return f"{there} where the old text has {shown(mine)}."
    return f"Nearest is line {number + 1}: {shown(lines[number])}."


def _like(lines: list[str], wanted: str) -> int | None:
    if not wanted:
        return None
    stripped = [line.strip() for line in lines[: SEARCHED_LINES * 4]]
    if wanted in stripped:
        return stripped.index(wanted)
    import difflib

    short = sorted({line for line in stripped[:SEARCHED_LINES] if 0 < len(line) < 400})
    close = difflib.get_close_matches(wanted[:400], short, n=1, cutoff=0.6)
    return stripped.index(close[0]) if close else None


def shown(line: str) -> str:
    """Quote a line with its tabs and bytes that are not text made visible, cut to a readable length."""
    cut = line if len(line) <= SHOWN else line[:SHOWN] + "…"
    visible = "".join(f"\\x{ord(char) - 0xDC00:02x}" if _is_byte(char) else char for char in cut)
    return "`" + visible.replace("\t", "\\t").replace("\r", "\\r") + "`"


def _is_byte(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"
