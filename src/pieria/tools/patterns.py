"""Path patterns: globs as callers write them, and the rules of .gitignore files. Standard library only, and pure.

Paths are relative, with slashes. `*` and `?` stay inside one name, `**` crosses folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

ONE_BYTE = r"[\x00-.0-\x7f\udc80-\udcff]"
"""All that `?` and sets match: to git and ripgrep they stand for one byte, and a character may be several."""
MOST_CHOICES = 200
MOST_BRACES = 50


class PatternError(ValueError):
    """The pattern can't be read; the text says why."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a glob: without a slash it means a name at any depth, with one it starts at the searched folder."""
    plain = pattern.removeprefix("./")
    if "/" not in plain:
        plain = f"**/{plain}"
    elif plain.endswith("/"):
        plain += "**"
    alternatives = "|".join(translated(each.removeprefix("/")) for each in _unbraced(plain))
    try:
        return re.compile(rf"(?:{alternatives})\Z", re.DOTALL)
    except re.error as problem:
        raise PatternError(f"The pattern {pattern!r} can't be read: {problem}") from None


def _unbraced(pattern: str) -> list[str]:
    """Expand `{a,b}`, nested too; refuses what would grow beyond MOST_CHOICES patterns."""
    if pattern.count("{") > MOST_BRACES:
        raise PatternError("The pattern has too many {a,b} choices")
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        inner = _innermost(text)
        if inner is None:
            done.append(text)
        else:
            start, end = inner
            waiting += [text[:start] + each + text[end + 1 :] for each in text[start + 1 : end].split(",")]
        if len(done) + len(waiting) > MOST_CHOICES:
            raise PatternError("The pattern has too many {a,b} choices")
    return done


def _innermost(text: str) -> tuple[int, int] | None:
    start = -1
    for place, each in enumerate(text):
        if each == "{":
            start = place
        elif each == "}" and start >= 0:
            return start, place
    return None


def translated(pattern: str) -> str:
    """Return the regular expression of one pattern without braces, for a whole relative path.

    It never tries a place twice: between wildcards the first fit is as good as any, so each is kept once found.
    """
    lead, *groups = _groups(pattern)
    parts = ["".join(f"{name}/" for name in lead)] if groups else ["/".join(lead)]
    between = ["".join(f"{name}/" for name in group) for group in groups[:-1]]
    parts += [f"(?>(?:[^/]*+/)*?{names})" for names in between if names]
    if groups:
        parts.append(f"(?:[^/]*+/)*?{'/'.join(groups[-1])}" if groups[-1] else ".+")
    return "".join(parts)


def _groups(pattern: str) -> list[list[str]]:
    """Split a pattern where `**` stands for folders, and each group into the expressions of its names."""
    groups: list[list[str]] = [[]]
    runs = [""]
    place = 0
    while place <= len(pattern):
        if pattern.startswith("**", place) and (place == 0 or pattern[place - 1] == "/"):
            rest = pattern[place:].lstrip("*")
            if rest[:1] in {"", "/"}:
                groups.append([])
                place = len(pattern) - len(rest) + 1
                if not rest:
                    return groups
                continue
        piece, place = _one(pattern, place) if place < len(pattern) else ("/", place + 1)
        if piece == "/":
            groups[-1].append(_name(runs))
            runs = [""]
        elif piece == "*":
            runs.append("")
        else:
            runs[-1] += piece
    return groups


def _name(runs: list[str]) -> str:
    """Return the expression of one name: `runs` are what stands between its stars."""
    if len(runs) == 1:
        return runs[0]
    first, *others, last = runs
    return f"(?>{first}{''.join(f'(?>[^/]*?{run})' for run in others)}[^/]*{last}(?=/|\\Z))"


def _one(pattern: str, place: int) -> tuple[str, int]:
    each = pattern[place]
    if each == "*":
        end = place
        while end < len(pattern) and pattern[end] == "*":
            end += 1
        return "*", end
    if each == "?":
        return ONE_BYTE, place + 1
    if each == "[" and (end := _class_end(pattern, place)) > 0:
        return _class(pattern[place + 1 : end]), end + 1
    if each == "\\" and place + 1 < len(pattern):
        return re.escape(pattern[place + 1]), place + 2
    return re.escape(each), place + 1


def _class_end(pattern: str, place: int) -> int:
    start = place + 1
    if pattern[start : start + 1] in {"!", "^"}:
        start += 1
    return pattern.find("]", start + 1)


def _class(inside: str) -> str:
    """Return a set of characters; one that excludes some still takes single bytes only."""
    negated = inside[0] in "!^"
    body = inside[1:] if negated else inside
    body = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", body)
    return f"(?={ONE_BYTE})[{'^' if negated else ''}{body}]"


# --- .gitignore --------------------------------------------------------------------------------------------------


class Rule:
    """One line of a .gitignore file, for paths relative to the file's folder."""

    __slots__ = ("folders_only", "keeps", "matches")

    def __init__(self, line: str) -> None:
        self.keeps = line.startswith("!")
        text = line[1:] if self.keeps else line
        self.folders_only = text.endswith("/")
        text = text.rstrip("/") if self.folders_only else text
        anchored = "/" in text
        text = text.removeprefix("/")
        expression = translated(text if anchored else f"**/{text}")
        self.matches = re.compile(rf"{expression}\Z", re.DOTALL).match


def rules(text: str) -> list[Rule]:
    """Read a .gitignore file; lines that can't be read are left out, as git does."""
    return list(_rules(text.removeprefix("\ufeff")))


def _rules(text: str) -> Iterator[Rule]:
    for raw in text.split("\n"):
        line = _trimmed(raw.removesuffix("\r"))
        if not line.strip("/") or line.startswith("#") or not line.removeprefix("!").strip("/"):
            continue
        try:
            yield Rule(line)
        except re.error:
            continue


def _trimmed(line: str) -> str:
    """Drop spaces at the end, but not one that a backslash keeps."""
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if escapes % 2 and len(bare) < len(line) else bare


Layer = tuple[str, Sequence[Rule]]
"""A folder that has a .gitignore, as an absolute path with a slash at its end, and its rules."""


def ignored(path: str, layers: Sequence[Layer], *, is_folder: bool) -> bool:
    """Whether rules leave out an absolute path. Layers stand outermost first; the deepest that says anything wins."""
    for prefix, found in reversed(layers):
        below = path[len(prefix) :]
        for rule in reversed(found):
            if (is_folder or not rule.folders_only) and rule.matches(below):
                return not rule.keeps
    return False
