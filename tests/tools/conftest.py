"""A folder of real files with a tool kit that works in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from pieria.core.ports import Place, Tool
from pieria.core.values import Examined, OpId, ToolResult
from pieria.tools.arguments import parse
from pieria.tools.kit import kit
from tests.tools.real_files import RealFiles


class Bench(NamedTuple):
    """Calls tools as the runtime does: parse, examine, then run or apply; remembers what was read or written."""

    root: Path
    place: Place
    files: RealFiles
    known: dict[str, str | None]
    tools: dict[str, Tool]

    def fields(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        import json

        spec = self.tools[name].spec
        assert isinstance(spec.parameters, str)
        fields = parse(json.dumps(arguments), spec.parameters)
        assert isinstance(fields, dict), fields
        return fields

    def examine(self, name: str, **arguments: object) -> Examined:
        return self.tools[name].examine(self.fields(name, arguments), self.place)

    def call(self, name: str, **arguments: object) -> ToolResult:
        tool, fields = self.tools[name], self.fields(name, arguments)
        facts = tool.examine(fields, self.place)
        if facts.error:
            return ToolResult(text=facts.error, error=True)
        if facts.access == "edit":
            result = tool.applied(facts, self.files.apply(OpId("lead.1"), facts.changes))
        else:
            result = tool.run(facts, fields, self.place)
        self.known.update({each.path: each.sha256 for each in result.details.files})
        return result

    def text(self, name: str, **arguments: object) -> str:
        result = self.call(name, **arguments)
        assert isinstance(result.text, str)
        return result.text

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = Path(os.path.realpath(tmp_path)) / "checkout"
    root.mkdir()
    files, known = RealFiles(), {}
    tools = kit(files, known=known.get, search_path=os.environ["PATH"])
    return Bench(root, Place(root=str(root)), files, known, tools)
