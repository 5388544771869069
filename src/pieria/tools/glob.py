"""`glob`: names of files that match a path pattern, in order. An absolute pattern is searched where it points."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pieria.core.ports import Files, Place
from pieria.core.values import Examined, ToolResult, ToolSpec
from pieria.tools.base import ChangesNothing, StartsNothing, counted, fingerprint, found, refused, shown, string
from pieria.tools.grep import git_problem, glob_problem
from pieria.tools.read import absent
from pieria.tools.specs import GLOB as SPEC

NAMES = 500
RESULT_BYTES = 16_000


class Glob(ChangesNothing, StartsNothing):
    """The tool `glob`. `search_path` is where programs are found; empty: Python alone."""

    def __init__(self, files: Files, *, search_path: str) -> None:
        self._files = files
        self._search_path = search_path

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        path, pattern = _placed(string(arguments, "path"), string(arguments, "pattern"))
        problem = "The pattern is empty. All files: **" if not pattern else glob_problem(pattern)
        if problem:
            return refused(SPEC, problem, [path, pattern])
        touched = found(self._files, path or ".", place)
        if isinstance(touched, str):
            return refused(SPEC, touched, [path, pattern])
        if problem := git_problem(touched.real):
            return refused(SPEC, problem, [touched.real, pattern])
        return Examined(access="read", action=fingerprint(SPEC, [touched.real, pattern]), paths=(touched,))

    def run(self, facts: Examined, arguments: Mapping[str, object], place: Place) -> ToolResult:
        from pieria.tools import search
        from pieria.tools.patterns import compiled

        base, given = facts.paths[0].real, shown(facts.paths[0].given)
        _, pattern = _placed(string(arguments, "path"), string(arguments, "pattern"))
        if not os.path.isdir(base):
            if os.path.isfile(base):
                return ToolResult(text=f"{given} is a file, not a folder.", error=True)
            return ToolResult(text=absent(given, base, place), error=True)
        matches = compiled(pattern).match
        using = search.programs(place.root, self._search_path)
        try:
            names = search.listing(base, using, until=search.deadline())
        except search.OutOfTime:
            words = f"There is too much below {given}: listing it took over {search.LIMIT_S:.0f} s. Narrow path."
            return ToolResult(text=words, error=True)
        except (search.Failed, OSError) as problem:
            return ToolResult(text=f"The search failed: {problem}", error=True)
        top = os.fsencode(base)
        rows = [shown(os.path.join(top, name), place.root) for name in names if matches(os.fsdecode(name))]
        return ToolResult(text=_page(rows) if rows else _nothing(base, given, pattern, count=len(names)))


def _placed(path: str, pattern: str) -> tuple[str, str]:
    """Move what leads an absolute or climbing pattern, up to its first wildcard, into the path."""
    if not pattern.startswith(("/", "../")):
        return path, pattern
    *folders, last = pattern.split("/")
    fixed: list[str] = []
    while folders and not any(each in folders[0] for each in "*?[{\\"):
        fixed.append(folders.pop(0))
    lead = "/".join(fixed) or "/"
    return lead if pattern.startswith("/") else os.path.join(path, lead), "/".join([*folders, last]) or "**"


def _page(names: list[str]) -> str:
    rows: list[str] = []
    room = RESULT_BYTES
    for name in names[:NAMES]:
        room -= len(name.encode()) + 1
        if room < 0:
            break
        rows.append(name)
    if len(rows) < len(names):
        rows.append(f"[{len(names) - len(rows)} more of {len(names)}: narrow pattern or path]")
    return "\n".join(rows)


def _nothing(base: str, given: str, pattern: str, *, count: int) -> str:
    """Say that nothing matches, and how it would if the pattern is a folder's name."""
    hint = ""
    if os.path.isdir(os.path.join(base, pattern.strip("/"))):
        hint = f" {pattern.strip('/')} is a folder: its files are {pattern.strip('/')}/**"
    return f"No match among {counted(count, 'file')} below {given}; what .gitignore names is left out.{hint}"
