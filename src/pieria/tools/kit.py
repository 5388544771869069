"""All tools of an agent by name, sorted, so that every agent's tools stand in one order in every request."""

from __future__ import annotations

from collections.abc import Callable

from pieria.core.ports import Files, Tool
from pieria.tools.edit import Edit
from pieria.tools.glob import Glob
from pieria.tools.grep import Grep
from pieria.tools.read import Read
from pieria.tools.shell import Shell
from pieria.tools.todo import ToDo
from pieria.tools.write import Write


def kit(files: Files, *, known: Callable[[str], str | None], search_path: str) -> dict[str, Tool]:
    """Build an agent's tools. `known`: see Write; `search_path`: the PATH on which ripgrep and git are looked for."""
    tools: tuple[Tool, ...] = (
        Edit(files),
        Glob(files, search_path=search_path),
        Grep(files, search_path=search_path),
        Read(files),
        Shell(),
        ToDo(),
        Write(files, known=known),
    )
    return {tool.spec.name: tool for tool in tools}
