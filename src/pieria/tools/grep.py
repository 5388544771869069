"""`grep`: lines that match a regular expression, grouped by file, in order, and no more than a context can bear."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pieria.core.ports import Files, Place
from pieria.core.values import Examined, ToolResult, ToolSpec
from pieria.tools.base import (
    FILE_BYTES,
    ChangesNothing,
    StartsNothing,
    counted,
    fingerprint,
    found,
    refused,
    shown,
    size,
    string,
    whole,
)
from pieria.tools.read import absent
from pieria.tools.specs import GREP as SPEC
from pieria.tools.specs import MATCHES

if TYPE_CHECKING:
    from pieria.tools.search import Line

MOST_MATCHES = 1000
MOST_CONTEXT = 20
RESULT_BYTES = 16_000
COUNTED = 50_000
"""Matches beyond this are not even counted."""
PATTERN_CHARS = 10_000


class Grep(ChangesNothing, StartsNothing):
    """The tool `grep`. `search_path` is where programs are found; empty: Python alone."""

    def __init__(self, files: Files, *, search_path: str) -> None:
        self._files = files
        self._search_path = search_path

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        given, pattern, glob = (string(arguments, name) for name in ("path", "pattern", "glob"))
        numbers = [str(whole(arguments, name, -1)) for name in ("context", "max")]
        parts = [pattern, glob, str(arguments.get("ignore_case", False)), *numbers]
        problem = pattern_problem(pattern) or glob_problem(glob)
        if problem:
            return refused(SPEC, problem, [given, *parts])
        touched = found(self._files, given or ".", place)
        if isinstance(touched, str):
            return refused(SPEC, touched, [given, *parts])
        if problem := git_problem(touched.real):
            return refused(SPEC, problem, [touched.real, *parts])
        return Examined(access="read", action=fingerprint(SPEC, [touched.real, *parts]), paths=(touched,))

    def run(self, facts: Examined, arguments: Mapping[str, object], place: Place) -> ToolResult:
        from pieria.tools import search
        from pieria.tools.patterns import compiled

        real, given = facts.paths[0].real, shown(facts.paths[0].given)
        base, file = os.path.split(real) if os.path.isfile(real) else (real, "")
        if not os.path.isdir(base):
            return ToolResult(text=absent(given, real, place), error=True)
        if file and os.path.getsize(real) > FILE_BYTES:
            return ToolResult(text=f"{given} is over {size(FILE_BYTES)}: use grep by shell.", error=True)
        ignores_case = arguments.get("ignore_case") is True
        context = max(0, min(whole(arguments, "context", 0), MOST_CONTEXT))
        query = search.Query(string(arguments, "pattern"), ignores_case=ignores_case, context=context)
        glob = string(arguments, "glob")
        page = _Page(most=max(1, min(whole(arguments, "max", MATCHES), MOST_MATCHES)))
        try:
            for hit in search.hits(
                query,
                base,
                search.programs(place.root, self._search_path),
                until=search.deadline(),
                file=file,
                wanted=compiled(glob) if glob and not file else None,
            ):
                path = os.path.join(base, os.fsdecode(hit.path))
                if not facts.paths[0].secret and self._is_secret(path, place):
                    page.secret.append(shown(path, place.root))
                elif not page.add(shown(path, place.root), hit.lines, matches=hit.matches):
                    break
        except search.OutOfTime:
            page.notes.append(f"stopped after {search.LIMIT_S:.0f} s, so this is not all: narrow path, glob or pattern")
        except (search.Failed, OSError) as problem:
            return ToolResult(text=_failure(str(problem)), error=True)
        return ToolResult(text=page.text())

    def _is_secret(self, path: str, place: Place) -> bool:
        """Whether a found file may hold secrets; one whose place can't be told counts as one."""
        touched = found(self._files, path, place)
        return isinstance(touched, str) or touched.secret


def pattern_problem(pattern: str) -> str:
    """Say what is wrong with a regular expression; ones that Python alone understands are judged when they run."""
    import re

    from pieria.tools.search import is_common

    if not pattern:
        return "The pattern is empty. To list files use glob."
    if "\n" in pattern or "\0" in pattern or len(pattern) > PATTERN_CHARS:
        return f"The pattern must be one line of at most {PATTERN_CHARS} characters, without NUL: lines are searched."
    if not is_common(pattern):
        return ""
    try:
        re.compile(pattern)
    except re.error as problem:
        at = f" at character {problem.pos}" if problem.pos is not None else ""
        return f"The pattern can't be read: {problem.msg}{at}. Escape ( [ {{ . * + ? | with \\ to mean them as such."
    except (RecursionError, OverflowError):
        return "The pattern is nested too deeply or repeats too often."
    return ""


def _failure(words: str) -> str:
    from pieria.tools.scan import BAD_PATTERN

    if words.startswith(BAD_PATTERN):
        return f"The pattern can't be read: {words.removeprefix(BAD_PATTERN)}."
    return f"The search failed: {words}"


def glob_problem(glob: str) -> str:
    from pieria.tools.patterns import PatternError, compiled

    if "\0" in glob or len(glob) > 1000:
        return "A glob can't hold NUL or more than 1000 characters."
    try:
        compiled(glob or "*")
    except PatternError as problem:
        return f"{problem}. Use *, **, ?, [abc] and {{a,b}}."
    return ""


def git_problem(real: str) -> str:
    return "Git's own folder is not searched: ask git by shell." if ".git" in real.split("/") else ""


class _Page:
    """A result that grows match by match until it is full, and from there on only counts."""

    def __init__(self, *, most: int) -> None:
        self.notes: list[str] = []
        self.secret: list[str] = []
        self._most = most
        self._room = RESULT_BYTES
        self._rows: list[str] = []
        self._matches = self._files = self._shown = self._shown_files = 0
        self._is_full = False

    def add(self, path: str, lines: Sequence[Line], *, matches: int) -> bool:
        """Take a file's lines as far as there is room. False: enough even to count."""
        self._matches += matches
        self._files += 1
        if not self._is_full:
            self._take(path, lines)
        return self._matches < COUNTED

    def _take(self, path: str, lines: Sequence[Line]) -> None:
        has_context = not all(line.matches for line in lines)
        rows, last, taken = [path], 0, 0
        for line in lines:
            gap = last > 0 and line.number > last + 1
            if self._shown + taken >= self._most and (line.matches or gap):
                self._is_full = True
                break
            new = ["--"] if gap and has_context else []
            new.append(f"{line.number}{':' if line.matches else '-'}{line.text}")
            self._room -= sum(len(row.encode()) + 1 for row in new)
            if self._room < 0:
                self._is_full = True
                break
            rows += new
            last = line.number
            taken += line.matches
        if taken:
            self._rows += rows
            self._room -= len(path.encode()) + 1
            self._shown += taken
            self._shown_files += 1

    def text(self) -> str:
        notes = list(self.notes)
        if not self._matches:
            rows = ["No matches. Binary files, ones over 20 MB and what .gitignore names were not searched."]
        else:
            rows = self._rows
        if self._shown < self._matches:
            more = "+" if self._matches >= COUNTED else ""
            notes.insert(
                0,
                f"{self._shown} of {self._matches}{more} matches shown, in {self._shown_files} of "
                f"{counted(self._files, 'file')}: narrow pattern, path or glob",
            )
        if self.secret:
            names = ", ".join(self.secret[:5]) + (", ..." if len(self.secret) > 5 else "")
            notes.append(f"matches in files that may hold secrets are left out: {names}")
        return "\n".join([*rows, f"[{'; '.join(notes)}]"] if notes else rows)
