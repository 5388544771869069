"""The facts of the place that every agent starts from, worded once and recorded."""

from __future__ import annotations

import os
import sys

from pieria.core.events.session import SettingsApplied
from pieria.core.leave import leave


def facts(*, root: str, branch: str, head: str, today: str, settings: SettingsApplied) -> str:
    """Word the place: folder, system, date, git and what may be done unasked."""
    lines = [f"Working folder: {shown(root)}"]
    lines += [f"Also open to you: {shown(folder)}" for folder in settings.add_dirs]
    lines.append(f"System: {system_name()}. Date: {today}.")
    if head or branch:
        lines.append(f"Git: branch {branch or '(detached)'}, commit {head[:12] or 'none yet'}.")
    else:
        lines.append("Git: the folder is not in a repository.")
    lines.append(leave(settings))
    return "\n".join(lines)


def system_name() -> str:
    """Linux or macOS with the kernel's release."""
    name = {"linux": "Linux", "darwin": "macOS"}.get(sys.platform, sys.platform)
    return f"{name} {os.uname().release}"


def shown(path: str) -> str:
    """A path fit for a prompt: bytes that are not UTF-8 become replacement characters."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
