"""`edit`: exact replacements in files as they are now, in one file or several; all are made or none."""

from __future__ import annotations

from collections.abc import Mapping

from pieria.core.ports import Applied, FileImage, FileProblem, Files, Place
from pieria.core.textedit import Edit as Replacement
from pieria.core.textedit import Mismatch, splice
from pieria.core.values import Change, Examined, ToolResult, ToolSpec, TouchedPath
from pieria.tools.base import (
    FILE_BYTES,
    RunsNothing,
    StartsNothing,
    counted,
    fingerprint,
    found,
    refused,
    shown,
    string,
)
from pieria.tools.changing import change, difference, is_private, parts, result
from pieria.tools.read import absent
from pieria.tools.specs import EDIT as SPEC


class Edit(RunsNothing, StartsNothing):
    """The tool `edit`."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        by_path = _by_path(arguments)
        if isinstance(by_path, str):
            return refused(SPEC, by_path, [repr(sorted(arguments.items()))])
        asked: dict[str, tuple[TouchedPath, list[Replacement]]] = {}
        for given, edits in by_path.items():
            touched = found(self._files, given, place)
            if isinstance(touched, str):
                return refused(SPEC, touched, [given])
            asked.setdefault(touched.real, (touched, []))[1].extend(edits)
        paths = tuple(touched for touched, _ in asked.values())
        changes: list[Change] = []
        notes: list[str] = []
        diffs: list[str] = []
        for touched, edits in asked.values():
            name = shown(touched.given)
            spliced = self._spliced(touched, edits, name, place=place)
            if isinstance(spliced, str):
                return _stopped(spliced, paths, edits, alone=len(asked) == 1)
            image, post, said = spliced
            notes += said
            if post != image.data:
                changes.append(change(touched.real, image, post))
                diffs.append(difference(image.data, post, name))
        if not changes:
            return _stopped(" ".join(notes), paths, [], alone=True)
        return Examined(
            access="edit",
            action=fingerprint(SPEC, parts(changes)),
            paths=paths,
            changes=tuple(changes),
            diff="".join(diffs),
            note="\n".join(notes),
        )

    def _spliced(
        self, touched: TouchedPath, edits: list[Replacement], name: str, *, place: Place
    ) -> tuple[FileImage, bytes, list[str]] | str:
        """Return the file with its new content and what to say of it, or why there is none."""
        try:
            image = self._files.read(touched.real, limit=FILE_BYTES)
        except FileProblem as problem:
            if problem.kind == "absent":
                near = f"{name} does not exist." if is_private(touched) else absent(name, touched.real, place)
                return f"{near} New files are made with write."
            return str(problem)
        if b"\0" in image.data[:8000] and not image.data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
            return f"{name} is binary: not edited."
        spliced = splice(image.data, edits)
        if isinstance(spliced, Mismatch):
            return f"{name}: {_guarded(spliced, touched)}"
        said = [f"Edited {name} in {counted(spliced.replaced, 'place')}."] if spliced.replaced else []
        return image, spliced.data, [*said, *(f"{name}: {note}" for note in spliced.notes)]

    def applied(self, facts: Examined, outcome: Applied) -> ToolResult:
        return result(facts, outcome, with_diff=True)


def _by_path(arguments: Mapping[str, object]) -> dict[str, list[Replacement]] | str:
    """Group the edits by the path they name, in order."""
    items = arguments["edits"]
    assert isinstance(items, list)
    if not items:
        return "edits is empty: nothing to do."
    top = string(arguments, "path")
    grouped: dict[str, list[Replacement]] = {}
    for number, item in enumerate(items):
        given = string(item, "path") or top
        if not given:
            return f"edits[{number}] names no path, and there is none beside edits: say which file."
        edit = Replacement(string(item, "old"), string(item, "new"), replace_all=item.get("all") is True)
        grouped.setdefault(given, []).append(edit)
    return grouped


def _guarded(mismatch: Mismatch, touched: TouchedPath) -> str:
    """Keep a file's content out of an error that comes before policy has ruled on reading it."""
    return "an edit does not fit. Read it, then repeat." if is_private(touched) else mismatch.message


def _stopped(error: str, paths: tuple[TouchedPath, ...], edits: list[Replacement], *, alone: bool) -> Examined:
    tail = "" if alone else " No file was changed."
    action = [part for path in paths for part in (path.real,)] + [
        part for edit in edits for part in (edit.old, edit.new)
    ]
    return Examined(access="edit", action=fingerprint(SPEC, action), error=error + tail, paths=paths)
