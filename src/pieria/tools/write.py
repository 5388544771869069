"""`write`: a whole file, new or in place of one that this agent knows as it is now."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from pieria.core.ports import Applied, FileImage, FileProblem, Files, Place
from pieria.core.textedit import decode
from pieria.core.textedit.encoding import DAMAGED, UNKNOWN
from pieria.core.values import Examined, ToolResult, ToolSpec, TouchedPath
from pieria.tools.base import (
    FILE_BYTES,
    RunsNothing,
    StartsNothing,
    counted,
    fingerprint,
    found,
    refused,
    shown,
    size,
    string,
)
from pieria.tools.changing import change, difference, is_private, parts, result
from pieria.tools.specs import WRITE as SPEC


class Write(RunsNothing, StartsNothing):
    """The tool `write`. `known` gives the sha256 of what this agent last read or wrote of a real path, if it did."""

    def __init__(self, files: Files, *, known: Callable[[str], str | None]) -> None:
        self._files = files
        self._known = known

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        given, content = string(arguments, "path"), string(arguments, "content")
        touched = found(self._files, given, place)
        if given.endswith("/"):
            touched = f"{shown(given)} names a folder: give the file's name too."
        if isinstance(touched, str):
            return refused(SPEC, touched, [given, content])
        name = shown(given)
        try:
            image = self._files.read(touched.real, limit=FILE_BYTES)
        except FileProblem as fault:
            if fault.kind != "absent":
                return self._stopped(str(fault), touched, content)
            image = None
        if problem := self._problem(image, touched, name):
            return self._stopped(problem, touched, content)
        post, notes = fitted(content, image)
        if image and post == image.data:
            return self._stopped(f"{name} has exactly this content already: nothing to do.", touched, content)
        changed = change(touched.real, image, post)
        lines = counted(content.count("\n") + (not content.endswith("\n") and bool(content)), "line")
        note = f"{'Replaced' if image else 'Created'} {name}: {lines}, {size(len(post))}."
        return Examined(
            access="edit",
            action=fingerprint(SPEC, parts([changed])),
            paths=(touched,),
            changes=(changed,),
            diff=difference(image.data if image else b"", post, name),
            note="\n".join([note, *notes]),
        )

    def _problem(self, image: FileImage | None, touched: TouchedPath, name: str) -> str:
        """Say why the file must not be written now, "" if it may."""
        if image is None:
            return _parent_problem(touched.real)
        known = self._known(touched.real)
        if known is None:
            return f"{name} exists, and you have not read it. Read it first, or make the change with edit."
        if known != image.sha256:
            now = "" if is_private(touched) else f" It has {counted(image.data.count(10), 'line')} now."
            return f"{name} has changed since you last read it.{now} Read it again, or make the change with edit."
        return ""

    def _stopped(self, error: str, touched: TouchedPath, content: str) -> Examined:
        action = fingerprint(SPEC, [touched.real, content])
        return Examined(access="edit", action=action, error=error, paths=(touched,))

    def applied(self, facts: Examined, outcome: Applied) -> ToolResult:
        return result(facts, outcome, with_diff=False)


def fitted(content: str, image: FileImage | None) -> tuple[bytes, list[str]]:
    """Return the bytes to write: mark, encoding and CRLF of the file that was there are kept, and that is said."""
    if image is None or not image.data:
        return content.encode(), []
    old = decode(image.data)
    notes: list[str] = []
    if old.newline == "\r\n" and "\n" in content and "\r\n" not in content:
        content = content.replace("\n", "\r\n")
        notes.append("Its CRLF line endings were kept.")
    if old.encoding in {UNKNOWN, DAMAGED}:
        return content.encode(), [*notes, "It was not UTF-8 before; it is now."]
    if old.bom:
        content = content.removeprefix("\ufeff")
        kept = "byte-order mark" if old.encoding == "utf-8" else f"encoding ({old.encoding.upper()})"
        notes.append(f"Its {kept} was kept.")
    return old.bom + content.encode(old.encoding), notes


def _parent_problem(real: str) -> str:
    """Say which part of a new file's path is no folder."""
    folder = os.path.dirname(real)
    while folder != "/" and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return "" if os.path.isdir(folder) else f"{shown(folder)} is not a folder: nothing can be made in it."
