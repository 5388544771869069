"""A small unified diff of two texts: what a person reads before saying yes."""

from __future__ import annotations

CONTEXT = 3
MANY_LINES = 4000
"""A changed region longer than this on both sides is shown as replaced whole: matching costs too much."""


def diff(pre: str, post: str, path: str) -> str:
    """Return the unified diff, "" when nothing changed. Lines are split at LF alone."""
    if pre == post:
        return ""
    old, new = pre.split("\n"), post.split("\n")
    old, new = _ended(old), _ended(new)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start, stop = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    hunks = _hunks(old[start : len(old) - stop], new[start : len(new) - stop], start)
    return "".join([f"--- a/{path}\n", f"+++ b/{path}\n", *hunks])


def _ended(lines: list[str]) -> list[str]:
    """Give every line its end back; a last line without one keeps being without."""
    whole = [line + "\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def _hunks(old: list[str], new: list[str], start: int) -> list[str]:
    import difflib

    if min(len(old), len(new)) > MANY_LINES:
        head = _common(old, new)
        tail = _common(old[head:][::-1], new[head:][::-1])
        codes: list[tuple[str, int, int, int, int]] = [
            ("equal", 0, head, 0, head),
            ("replace", head, len(old) - tail, head, len(new) - tail),
            ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
        ]
        groups = [codes]
    else:
        matcher = difflib.SequenceMatcher(None, old, new)
        groups = [list(group) for group in matcher.get_grouped_opcodes(CONTEXT)]
    said = []
    for group in groups:
        first, last = group[0], group[-1]
        ranges = f"-{_range(start + first[1], start + last[2])} +{_range(start + first[3], start + last[4])}"
        said.append(f"@@ {ranges} @@\n")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                said += [_line(" ", line) for line in old[old_from:old_to]]
                continue
            said += [_line("-", line) for line in old[old_from:old_to]]
            said += [_line("+", line) for line in new[new_from:new_to]]
    return said


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
