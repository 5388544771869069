"""What the folder says about itself: repository root, git's HEAD, instruction files. Starts no process, writes nothing.

A broken repository is an empty answer, never an error: git's own files belong to others.
"""

from __future__ import annotations

import os

from pieria.config.reading import read_start
from pieria.core.events.session import Instruction
from pieria.core.values import Value

INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md")
INSTRUCTION_BYTES = 32 * 1024
_HEAD_BYTES = 4096
_PACKED_BYTES = 64 << 20
_REF_DEPTH = 5


class Head(Value, frozen=True, gc=False):
    """Where HEAD stands. `commit` "" on an unborn branch, `branch` "" when detached, both "" when unknown."""

    branch: str = ""
    commit: str = ""


class Instructions(Value, frozen=True, gc=False):
    """Instruction files, the deepest last, and a note for each that was cut or left out."""

    files: tuple[Instruction, ...] = ()
    notes: tuple[str, ...] = ()


def repository_root(cwd: str) -> str:
    """Walk up to the folder that holds `.git` (a folder with a HEAD, or a file); "" when there is none."""
    here = os.path.realpath(cwd)
    while True:
        mark = f"{here.rstrip('/')}/.git"
        if os.path.isfile(mark) or os.path.lexists(f"{mark}/HEAD"):
            return here
        parent = os.path.dirname(here)
        if parent == here:
            return ""
        here = parent


# --- git ------------------------------------------------------------------------------------------------------


def head(root: str) -> Head:
    """Read HEAD as git would: linked worktrees, packed refs, detached and unborn heads."""
    git = _git_dir(root)
    text = _first_line(f"{git}/HEAD") if git else ""
    if not text.startswith("ref:"):
        return Head(commit=text) if _is_commit(text) else Head()
    name = text[4:].strip()
    if not _is_ref(name):
        return Head()
    return Head(branch=name.removeprefix("refs/heads/"), commit=_resolve(git, name, depth=_REF_DEPTH))


def _git_dir(root: str) -> str:
    mark = os.path.join(root, ".git")
    if os.path.isdir(mark):
        return mark
    text = _first_line(mark)
    if not text.startswith("gitdir:"):
        return ""
    return os.path.normpath(os.path.join(root, text[7:].strip()))


def _resolve(git: str, name: str, *, depth: int) -> str:
    common = _common_dir(git)
    text = _first_line(f"{git}/{name}") or _first_line(f"{common}/{name}")
    if text.startswith("ref:"):
        target = text[4:].strip()
        return _resolve(git, target, depth=depth - 1) if depth and _is_ref(target) else ""
    if text:
        return text if _is_commit(text) else ""
    return _packed(common, name)


def _common_dir(git: str) -> str:
    text = _first_line(f"{git}/commondir")
    return os.path.normpath(os.path.join(git, text)) if text else git


def _packed(common: str, name: str) -> str:
    try:
        data = read_start(f"{common}/packed-refs", limit=_PACKED_BYTES)
    except (OSError, ValueError):
        return ""
    end = data.find(b" " + os.fsencode(name) + b"\n")
    start = data.rfind(b"\n", 0, max(end, 0)) + 1
    commit = data[start:end].decode("ascii", "replace") if end > 0 else ""
    return commit if _is_commit(commit) else ""


def _first_line(path: str) -> str:
    """Return a small file's first line, "" for anything that is not one."""
    try:
        data = read_start(path, limit=_HEAD_BYTES)
    except (OSError, ValueError):
        return ""
    return os.fsdecode(data.split(b"\n", 1)[0].strip())


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and all(char in "0123456789abcdef" for char in text)


def _is_ref(name: str) -> bool:
    parts = name.split("/")
    return parts[0] == "refs" and len(parts) > 2 and not any(part in ("", ".", "..", ".invalid") for part in parts)


# --- instructions ---------------------------------------------------------------------------------------------


def instructions(root: str, cwd: str) -> Instructions:
    """Read AGENTS.md (else CLAUDE.md) of each folder from the root down to `cwd`. Both must be real or below.

    A file that leads out of the root by a link is left out; text that is not UTF-8 is read with replacements.
    """
    root, here = os.path.realpath(root), os.path.realpath(cwd)
    files: list[Instruction] = []
    notes: list[str] = []
    for folder in _folders(root, here):
        for name in INSTRUCTION_NAMES:
            path = f"{folder.rstrip('/')}/{name}"
            if os.path.lexists(path):
                _add(path, root, files, notes)
                break
    return Instructions(tuple(files), tuple(notes))


def _folders(root: str, here: str) -> list[str]:
    if here != root and not here.startswith(root.rstrip("/") + "/"):
        return [here]
    found = [here]
    while found[-1] != root:
        found.append(os.path.dirname(found[-1]))
    return found[::-1]


def _add(path: str, root: str, files: list[Instruction], notes: list[str]) -> None:
    real = os.path.realpath(path)
    if not real.startswith(root.rstrip("/") + "/"):
        notes.append(f"{path} is left out: it leads out of {root}")
        return
    try:
        data = read_start(real, limit=INSTRUCTION_BYTES + 1)
    except OSError as problem:
        notes.append(f"{path} is left out: {(problem.strerror or str(problem)).lower()}")
        return
    if len(data) > INSTRUCTION_BYTES:
        data = data[:INSTRUCTION_BYTES]
        data = data[: data.rfind(b"\n") + 1] or data
        notes.append(f"{path} is cut after {len(data)} bytes: at most {INSTRUCTION_BYTES // 1024} KB are read")
        data += b"\n[The rest of this file was left out: it is too long.]\n"
    files.append(Instruction(path=path, text=data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")))
