"""The search of last resort, as a program of its own: it walks folders and searches files where ripgrep can't.

A child process can be ended when a pattern never comes to an end; a thread can't. It speaks ripgrep's JSON and file
lists, so that one reader serves both. Standard library only: it starts without site-packages.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Container, Iterator
from typing import BinaryIO

from pieria.tools.patterns import Layer, ignored, rules

IGNORE = ".gitignore"
GIT = ".git"
BAD_PATTERN = "bad pattern: "


def main(argv: list[str], stdin: BinaryIO, stdout: BinaryIO) -> int:
    """`list`, or `grep PATTERN FLAGS CONTEXT MAX_BYTES` with file names on stdin, NUL between them.

    Flags: `i` ignores case; `p` says that a whole text without a match has no line with one.
    """
    if argv[0] == "list":
        stdout.writelines(b"./" + os.fsencode(path) + b"\0" for path in walk("."))
        return 0
    pattern, flags, context, limit = argv[1:]
    try:
        regex = re.compile(pattern, re.IGNORECASE if "i" in flags else 0)
    except (re.error, RecursionError, OverflowError) as problem:
        print(f"{BAD_PATTERN}{problem}", file=sys.stderr)
        return 3
    prefilter = re.compile(pattern, regex.flags | re.MULTILINE) if "p" in flags else None
    for name in stdin.read().split(b"\0"):
        text = contents(name, int(limit)) if name else None
        if text is not None and (prefilter is None or prefilter.search(text)):
            report(name, text, regex, context=int(context), stdout=stdout)
    return 0


# --- walking -----------------------------------------------------------------------------------------------------


def walk(base: str) -> Iterator[str]:
    """Yield regular files below a folder, by the order of their names' bytes, ignored ones and `.git` left out."""
    top = os.path.join(os.path.realpath(base), "")
    waiting = [("", above(top))]
    while waiting:
        folder, layers = waiting.pop()
        if folder and not folder.endswith("/"):
            yield folder
            continue
        try:
            with os.scandir(top + folder) as found:
                entries = sorted(found, key=lambda entry: os.fsencode(entry.name), reverse=True)
        except OSError:
            continue
        layers = inside(top + folder, layers, names={entry.name for entry in entries})
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == GIT or not (is_folder or entry.is_file(follow_symlinks=False)):
                continue
            path = folder + entry.name
            if not ignored(top + path, layers, is_folder=is_folder):
                waiting.append((path + "/" if is_folder else path, layers))


def above(top: str) -> list[Layer]:
    """Return the rules that reach a folder from above: up to the repository it is in, or to `/` without one."""
    here = top.rstrip("/")
    layers: list[Layer] = []
    while here and not os.path.lexists(f"{here}/{GIT}"):
        here = here.rpartition("/")[0]
        layers.append((f"{here}/", rules(text_of(f"{here}/{IGNORE}"))))
    return [layer for layer in reversed(layers) if layer[1]]


def inside(folder: str, layers: list[Layer], *, names: Container[str]) -> list[Layer]:
    """Add a folder's own rules; a repository inside another starts afresh."""
    outer = [] if GIT in names else layers
    found = rules(text_of(folder + IGNORE)) if IGNORE in names else []
    return [*outer, (folder, found)] if found else outer


def lies_ignored(top: str) -> bool:
    """Whether a folder, or one it lies in, is left out by the rules above it."""
    here = top.rstrip("/")
    while here and not os.path.lexists(f"{here}/{GIT}"):
        if ignored(here, above(here), is_folder=True):
            return True
        here = here.rpartition("/")[0]
    return False


def text_of(path: str) -> str:
    """Return a small regular file's text, "" for anything else."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return ""
        with open(path, "rb") as file:
            return file.read(1_000_000).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


# --- searching ---------------------------------------------------------------------------------------------------


def contents(path: bytes, limit: int) -> str | None:
    """Return a file's text with plain line ends, None for what is not searched: binary, too big, special or gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            return None
        try:
            data = file.read(limit + 1)
        except OSError:
            return None
    for mark, codec in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            text = data[2:].decode(codec, "replace")
            return None if "\0" in text else text.replace("\r\n", "\n")
    if b"\0" in data:
        return None
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return text.replace("\r\n", "\n")


def report(name: bytes, text: str, regex: re.Pattern[str], *, context: int, stdout: BinaryIO) -> None:
    """Write a file's matching lines and those around them, as ripgrep's JSON does."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    found = [n for n, line in enumerate(lines) if regex.search(line)]
    if not found:
        return
    path = _said(name.decode("utf-8", "surrogateescape"))
    _write(stdout, "begin", {"path": path})
    done = 0
    for place, match in enumerate(found):
        last = min(found[place + 1] if place + 1 < len(found) else len(lines), match + context + 1)
        for n in range(max(done, match - context), last):
            kind = "match" if n == match else "context"
            _write(stdout, kind, {"path": path, "line_number": n + 1, "lines": _said(lines[n])})
        done = last
    _write(stdout, "end", {"path": path, "binary_offset": None})


def _said(text: str) -> dict[str, str]:
    try:
        text.encode()
    except UnicodeEncodeError:
        from base64 import b64encode

        return {"bytes": b64encode(text.encode("utf-8", "surrogateescape")).decode()}
    return {"text": text}


def _write(stdout: BinaryIO, kind: str, data: dict[str, object]) -> None:
    stdout.write(json.dumps({"type": kind, "data": data}).encode() + b"\n")
