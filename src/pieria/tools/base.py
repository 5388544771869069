"""What tools share: fields out of arguments, fingerprints of actions, names and sizes fit to be shown.

Each tool is a `core.ports.Tool`; the mixins here crash where the runtime asks a tool for what its access rules out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256

from pieria.core.ports import Applied, Ended, FileProblem, Files, Place
from pieria.core.values import Examined, Text, ToolResult, ToolSpec, TouchedPath

FILE_BYTES = 20_000_000
"""Files beyond this are neither read, edited nor searched: other programs do that better."""


class RunsNothing:
    """For tools whose effect is a port's: Files applies it, or Processes."""

    def run(self, facts: Examined, arguments: Mapping[str, object], place: Place) -> ToolResult:
        raise AssertionError(f"a call of access {facts.access} is not run by its tool")


class ChangesNothing:
    """For tools that examine no changes."""

    def applied(self, facts: Examined, outcome: Applied) -> ToolResult:
        raise AssertionError(f"a call of access {facts.access} has no changes to apply: {outcome.status}")


class StartsNothing:
    """For tools that examine no command."""

    def ended(self, facts: Examined, outcome: Ended) -> ToolResult:
        raise AssertionError(f"a call of access {facts.access} has no command to end: {outcome.exit_code}")


def string(arguments: Mapping[str, object], name: str, default: str = "") -> str:
    value = arguments.get(name, default)
    assert isinstance(value, str), f"{name} was not fitted to the schema"
    return value


def whole(arguments: Mapping[str, object], name: str, default: int) -> int:
    value = arguments.get(name, default)
    assert isinstance(value, int), f"{name} was not fitted to the schema"
    return value


def fingerprint(spec: ToolSpec, parts: Iterable[str | None]) -> str:
    """Hash an exact action: what an approval is bound to. Each part counts with its length, None apart from ""."""
    digest = sha256()
    for part in (spec.name, str(spec.version), *parts):
        data = b"" if part is None else part.encode("utf-8", "surrogateescape")
        digest.update(f"{'-' if part is None else len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def refused(spec: ToolSpec, error: str, parts: Iterable[str | None] = ()) -> Examined:
    """Return facts of a call that can't run."""
    return Examined(access=spec.access, action=fingerprint(spec, parts), error=error)


def found(files: Files, given: str, place: Place) -> TouchedPath | str:
    """Return the real place of a path, or why there can be none."""
    if not given.strip():
        return "The path is empty. Paths start at the working folder, or with /."
    try:
        return files.touch(given, place)
    except FileProblem as problem:
        return str(problem)


def inline(text: Text) -> str:
    """Return recorded text that the runtime resolved; an unresolved blob is left out."""
    return text if isinstance(text, str) else ""


def shown(path: str | bytes, root: str = "") -> str:
    """Return a path as a model may see it: below `root` without it, and nothing that breaks a line or UTF-8."""
    data = path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape")
    text = data.decode("utf-8", "backslashreplace")
    if root and text.startswith(root.rstrip("/") + "/"):
        text = text[len(root.rstrip("/")) + 1 :]
    elif root and text == root:
        return "."
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def visible(text: str) -> str:
    """Return text with U+FFFD for each byte that stands in it as a lone surrogate."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def size(count: int) -> str:
    """Return a number of bytes in words: `512 bytes`, `1.4 MB`."""
    if count < 10_000:
        return f"{count} byte{'' if count == 1 else 's'}"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def entries(real: str, limit: int) -> tuple[list[str], int]:
    """List a folder, folders marked by a slash: the first names in order, and how many there are. Raises OSError."""
    with os.scandir(real) as found:
        names = sorted(entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "") for entry in found)
    return [shown(name) for name in names[:limit]], len(names)


def alike(real: str, root: str) -> list[str]:
    """Name up to five files that a missing path may have meant: near names in its folder. Nothing is chosen."""
    from difflib import get_close_matches

    folder, name = os.path.split(real)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    lowered: dict[str, list[str]] = {}
    for each in sorted(names)[:5000]:
        lowered.setdefault(each.lower(), []).append(each)
    close = [each for key in get_close_matches(name.lower(), lowered, n=5, cutoff=0.6) for each in lowered[key]]
    return [shown(os.path.join(folder, each), root) for each in close[:5]]
