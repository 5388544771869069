"""Finding files and lines by whatever is there: ripgrep, else git and Python, else Python alone; all find the same.

What is searched: regular files, hidden ones too, without links, without `.git` and without what .gitignore files say
(a repository's, down from its top; outside one, those of all folders above). Ignore rules alone decide, also for
tracked files; other exclude files do not count, but ripgrep 13 heeds .rgignore, and braces in .gitignore. A folder that
is named is searched even if it is ignored itself. In lines with bytes that are no text, or with a carriage return
inside, `.` and negated sets may match differently; all else is the same.
Nothing of a repository acts here: no hook, no filter, no config of the programs, and no program from inside it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from time import monotonic
from typing import NamedTuple

import msgspec

from pieria.tools.base import FILE_BYTES
from pieria.tools.children import Failed, OutOfTime, records
from pieria.tools.scan import lies_ignored

LIMIT_S = 20.0
KEPT_LINES = 2000
"""Lines kept of one file; further matches are only counted."""
KEPT_CHARS = 400

RG = (
    "--no-config",
    "--hidden",
    "--no-require-git",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
    "--glob=!.git",
    "--sort=path",
    "--no-messages",
    "--no-mmap",
)
GIT = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.ignoreCase=false",
    "ls-files",
    "-z",
    "--exclude-per-directory=.gitignore",
)
SCAN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from pieria.tools.scan import main; "
    "sys.exit(main(sys.argv[1:], sys.stdin.buffer, sys.stdout.buffer))"
)


class Programs(NamedTuple):
    """Real paths of the programs to use; None: do without."""

    rg: str | None = None
    git: str | None = None


class Query(NamedTuple):
    """What to look for, line by line: a pattern of Python's `re`."""

    pattern: str
    ignores_case: bool = False
    context: int = 0


class Line(NamedTuple):
    number: int
    text: str
    matches: bool


class FileHits(NamedTuple):
    """One file's matching lines and those around them; `matches` counts all of them, also those not kept."""

    path: bytes
    lines: list[Line]
    matches: int


def programs(root: str, search_path: str) -> Programs:
    """Find ripgrep and git on the search path, leaving out relative places and places inside `root`."""
    return Programs(rg=_program("rg", root, search_path), git=_program("git", root, search_path))


def _program(name: str, root: str, search_path: str) -> str | None:
    inside = os.path.join(root, "")
    for folder in search_path.split(os.pathsep):
        place = os.path.join(folder, name)
        if os.path.isabs(place) and os.path.isfile(place) and os.access(place, os.X_OK):
            real = os.path.realpath(place)
            if not real.startswith(inside) and not place.startswith(inside):
                return place
    return None


def order(path: bytes) -> list[bytes]:
    """Sort key: name by name, so that what is in a folder stands together."""
    return path.split(b"/")


# --- files -------------------------------------------------------------------------------------------------------


def listing(base: str, using: Programs, *, until: float) -> list[bytes]:
    """Return all files below a folder, as paths from it, in order. Raises OutOfTime, Failed or OSError."""
    if using.rg:
        argv = [using.rg, *RG, "--files", "--null", "./"]
        return [name[2:] for name in records(argv, b"\0", cwd=base, until=until)]
    if using.git and not lies_ignored(base):
        try:
            return _listed_by_git(base, using.git, until=until)
        except Failed:  # no repository, or one that git does not trust
            pass
    return _listed_by_scan(base, until=until)


def _listed_by_scan(base: str, *, until: float) -> list[bytes]:
    return [name[2:] for name in records([*_scan(), "list"], b"\0", cwd=base, until=until)]


def _listed_by_git(base: str, git: str, *, until: float) -> list[bytes]:
    names = set(records([git, *GIT, "--cached", "--others"], b"\0", cwd=base, until=until))
    names -= set(records([git, *GIT, "--cached", "--ignored"], b"\0", cwd=base, until=until))
    top = os.fsencode(base)
    real = {b"": True}
    found: list[bytes] = []
    for name in names:
        path = os.path.join(top, name.rstrip(b"/"))
        if not _lies_really(name.rstrip(b"/"), top, real):
            continue
        try:
            mode = os.lstat(path).st_mode
        except OSError:  # tracked, and gone
            continue
        if stat.S_ISDIR(mode):  # a repository inside this one
            inner = _listed_by_scan(os.fsdecode(path), until=until)
            found += [os.path.join(name.rstrip(b"/"), each) for each in inner]
        elif stat.S_ISREG(mode):
            found.append(name)
    return sorted(found, key=order)


def _lies_really(name: bytes, top: bytes, real: dict[bytes, bool]) -> bool:
    """Whether no folder on the way to a listed name is a link by now."""
    folder = name.rpartition(b"/")[0]
    if folder not in real:
        real[folder] = _lies_really(folder, top, real) and not os.path.islink(os.path.join(top, folder))
    return real[folder]


def _scan() -> list[str]:
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", SCAN, source]


# --- lines -------------------------------------------------------------------------------------------------------


def hits(
    query: Query, base: str, using: Programs, *, until: float, file: str = "", wanted: re.Pattern[str] | None = None
) -> Iterator[FileHits]:
    """Yield files with matches below a folder in order, or of one `file` in it; `wanted` chooses by path.

    Raises OutOfTime, Failed or OSError, before or between files.
    """
    begun = False
    if using.rg and is_common(query.pattern):
        try:
            with closing(records(_rg_argv(using.rg, query, file), b"\n", cwd=base, until=until)) as lines:
                for found in _files(lines, wanted):
                    begun = True
                    yield found
        except Failed:  # a pattern that only Python's `re` takes
            if begun:
                raise
        else:
            return
    names = [os.fsencode(file)] if file else listing(base, using, until=until)
    chosen = [name for name in names if wanted is None or wanted.match(os.fsdecode(name))]
    flags = ("i" if query.ignores_case else "") + ("p" if is_common(query.pattern) else "")
    argv = [*_scan(), "grep", query.pattern, flags, str(query.context), str(FILE_BYTES)]
    data = b"\0".join(b"./" + name for name in chosen)
    with closing(records(argv, b"\n", cwd=base, until=until, data=data)) as lines:
        yield from _files(lines, None)


def _rg_argv(rg: str, query: Query, file: str) -> list[str]:
    case = ["--ignore-case"] if query.ignores_case else ["--case-sensitive"]
    about = [f"--context={query.context}", f"--max-filesize={FILE_BYTES}", "--crlf", "--json"]
    return [rg, *RG, *case, *about, f"--regexp={query.pattern}", "--", f"./{file}"]


def is_common(pattern: str) -> bool:
    """Whether ripgrep's regular expressions and Python's surely mean the same by a pattern.

    Left to Python: groups with `(?` other than plain and named ones, possessive repeats, sets in sets, word edges of
    other dialects, anchors of a whole text, escapes that differ. What ripgrep then refuses goes to Python too.
    """
    return not re.search(
        r"\(\?(?!:|P<|i\))|[*+?}]\+|\[[^\]]*(?:\[|&&|--|~~|\|\|)|\\[<>ABZzNpPkGKQE0-9]|\(\?P[=>]|\\$|\{,|\\b\{|\\n",
        pattern,
    )


def _files(lines: Iterator[bytes], wanted: re.Pattern[str] | None) -> Iterator[FileHits]:
    """Read ripgrep's JSON; files that turn out to be binary are left out, as are those that are not wanted."""
    kept: list[Line] = []
    matches = 0
    is_wanted = True
    for line in lines:
        message = msgspec.json.decode(line)
        data = message["data"]
        match message["type"]:
            case "begin":
                kept, matches = [], 0
                is_wanted = wanted is None or bool(wanted.match(os.fsdecode(_said(data["path"])[2:])))
            case "match" | "context" as kind if is_wanted:
                matches += kind == "match"
                if len(kept) < KEPT_LINES:
                    text = _said(data["lines"]).rstrip(b"\r\n").decode("utf-8", "replace")
                    kept.append(Line(data["line_number"], _cut(text), kind == "match"))
            case "end" if is_wanted and data["binary_offset"] is None:
                yield FileHits(_said(data["path"])[2:], kept, matches)


def _said(text: dict[str, str]) -> bytes:
    from base64 import b64decode

    return text["text"].encode() if "text" in text else b64decode(text["bytes"])


def _cut(text: str) -> str:
    return text if len(text) <= KEPT_CHARS else f"{text[:KEPT_CHARS]} [... {len(text) - KEPT_CHARS} more characters]"


def deadline() -> float:
    """Return when a search that starts now has to end."""
    return monotonic() + LIMIT_S


__all__ = ["Failed", "FileHits", "Line", "OutOfTime", "Programs", "Query", "deadline", "hits", "listing", "programs"]
