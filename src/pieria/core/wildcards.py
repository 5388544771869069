"""Matching with `*`, `?` and `**`, without regular expressions; time: at most the product of both lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

MANY = "\ue000"
"""In an overlap: any characters, none too."""
ONE = "\ue001"
"""In an overlap: any one character."""


def word_matches(pattern: str, word: str) -> bool:
    """Whether a word fits a pattern in which `*` is any characters and `?` any one."""
    return _fits(pattern, word, many="*", one=lambda part, char: part in ("?", char))


def path_matches(pattern: str, path: str) -> bool:
    """Whether a path fits a glob: `**` is any number of folders, `*` and `?` stay inside one name."""
    return _fits(_names(pattern), _names(path), many="**", one=word_matches)


def overlap(left: str, right: str) -> bool:
    """Whether some text fits both patterns; only MANY and ONE are wild in them."""
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        at = i, j = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        a, b = left[i : i + 1], right[j : j + 1]
        if not a and not b:
            return True
        if a == MANY:
            todo.append((i + 1, j))
            if b:
                todo.append((i, j + 1))
        if b == MANY:
            todo.append((i, j + 1))
            if a:
                todo.append((i + 1, j))
        if a and b and MANY not in (a, b) and (a == b or ONE in (a, b)):
            todo.append((i + 1, j + 1))
    return False


def as_pattern(text: str) -> str:
    """Write a rule's word for `overlap`."""
    return text.replace("*", MANY).replace("?", ONE)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _fits(pattern: Sequence[str], parts: Sequence[str], *, many: str, one: Callable[[str, str], bool]) -> bool:
    """Greedy with one way back: to the last `many`, which then takes one part more."""
    at = taken = 0
    back = -1
    back_taken = 0
    while taken < len(parts):
        if at < len(pattern) and pattern[at] == many:
            back, back_taken = at, taken
            at += 1
        elif at < len(pattern) and one(pattern[at], parts[taken]):
            at += 1
            taken += 1
        elif back >= 0:
            back_taken += 1
            at, taken = back + 1, back_taken
        else:
            return False
    return all(part == many for part in pattern[at:])
