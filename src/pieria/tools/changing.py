"""What `edit` and `write` share: one file's change with its hashes, its diff, and words for how applying it ended."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from pieria.core.ports import Applied, FileImage
from pieria.core.textedit import decode, diff
from pieria.core.values import Change, Details, Examined, ToolResult, TouchedPath
from pieria.tools.base import counted, inline, shown, visible

DIFF_LINES = 60


def change(real: str, image: FileImage | None, post: bytes) -> Change:
    """Return the change from what a file is (None: absent) to `post`."""
    return Change(
        path=real,
        pre_sha256=image.sha256 if image else None,
        post_sha256=sha256(post).hexdigest(),
        mode=image.mode if image else None,
        pre=_text(image.data) if image else None,
        post=_text(post),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def difference(pre: bytes, post: bytes, name: str) -> str:
    """Return the diff as it is shown: line endings only where nothing else differs."""
    before, after = decode(pre).text, decode(post).text
    plain = diff(visible(before.replace("\r\n", "\n")), visible(after.replace("\r\n", "\n")), name)
    return plain or diff(visible(before), visible(after), name)


def parts(changes: Sequence[Change]) -> list[str | None]:
    """Return what an approval of changes is bound to."""
    return [part for each in changes for part in (each.path, each.pre_sha256, each.post_sha256)]


def is_private(touched: TouchedPath) -> bool:
    """Whether words about a path must say nothing of its content before policy has ruled."""
    return touched.secret or not touched.inside


def result(facts: Examined, outcome: Applied, *, with_diff: bool) -> ToolResult:
    """Word how a set of changes ended. The note of the facts says what was asked for."""
    detail = f" {outcome.detail}" if outcome.detail else ""
    names = ", ".join(shown(each.given) for each in facts.paths)
    match outcome.status:
        case "done":
            may_show = with_diff and not any(each.secret for each in facts.paths)
            text = "\n".join(filter(None, [inline(facts.note), _short(inline(facts.diff)) if may_show else ""]))
            return ToolResult(text=text, details=Details(files=outcome.files))
        case "conflict":
            text = f"Nothing was changed: {names} changed in the meantime.{detail} Read again, then repeat."
        case "mixed":
            text = f"Only a part was changed, and the rest could not be: read {names} before you go on.{detail}"
        case _:
            text = f"Nothing was changed.{detail}"
    conflict = outcome.status in {"conflict", "mixed"}
    return ToolResult(text=text, error=True, details=Details(files=outcome.files, conflict=conflict))


def _short(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= DIFF_LINES:
        return "\n".join(line[:400] for line in lines)
    kept = "\n".join(line[:400] for line in lines[:DIFF_LINES])
    return f"{kept}\n[{counted(len(lines) - DIFF_LINES, 'more line')} of diff]"
