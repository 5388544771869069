"""The facts of the place that every agent starts from, worded once and recorded."""

from __future__ import annotations

import os
import sys


def facts(*, root: str, add_dirs: tuple[str, ...], branch: str, head: str, today: str, mode: str) -> str:
    """Word the place: folder, system, date, git and what commands need."""
    lines = [f"Working folder: {shown(root)}"]
    lines += [f"Also open to you: {shown(folder)}" for folder in add_dirs]
    lines.append(f"System: {system_name()}. Date: {today}.")
    if head or branch:
        lines.append(f"Git: branch {branch or '(detached)'}, commit {head[:12] or 'none yet'}.")
    else:
        lines.append("Git: the folder is not in a repository.")
    lines.append(_LEAVE.get(mode, _LEAVE["edits"]))
    return "\n".join(lines)


_LEAVE = {
    "plan": "Leave: reading only. Edits and commands are refused; answer with a plan.",
    "ask": "Leave: reading is free; each edit and each command needs the person's yes.",
    "edits": "Leave: edits in the working folder are free; commands need a rule or the person's yes.",
    "full": "Leave: edits and commands are free. Nothing is sandboxed: be careful with what can't be undone.",
}


def system_name() -> str:
    """Linux or macOS with the kernel's release."""
    name = {"linux": "Linux", "darwin": "macOS"}.get(sys.platform, sys.platform)
    return f"{name} {os.uname().release}"


def shown(path: str) -> str:
    """A path fit for a prompt: bytes that are not UTF-8 become replacement characters."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
