"""Budget: 400 lines a file, 60 a function, 20 methods a class in src. There is no per-line escape.

A number that no longer fits is raised here, in a reviewed diff with its reason beside it.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT, definitions, files

FILE_LINES = 400
FUNCTION_LINES = 60
CLASS_METHODS = 20


def over_budget(root: Path) -> list[str]:
    found = []
    for path in files(root, "src"):
        place, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        if (lines := text.count("\n")) > FILE_LINES:
            found.append(f"{place}: {lines} lines, at most {FILE_LINES}")
        for node in definitions(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)
                if methods > CLASS_METHODS:
                    found.append(f"{place}: class {node.name} has {methods} methods, at most {CLASS_METHODS}")
            elif (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES:
                found.append(f"{place}: {node.name} has {lines} lines, at most {FUNCTION_LINES}")
    return found


def test_source_stays_inside_the_budget() -> None:
    assert over_budget(ROOT) == []


def test_a_long_file_a_long_function_and_a_wide_class_are_found(plant: Plant) -> None:
    methods = "".join(f"    def m{number}(self): ...\n" for number in range(CLASS_METHODS + 1))
    root = plant(
        {
            "src/pieria/long.py": "x = 1\n" * (FILE_LINES + 1),
            "src/pieria/deep.py": "async def f():\n" + "    x = 1  # noqa\n" * FUNCTION_LINES,
            "src/pieria/wide.py": "class Wide:\n" + methods,
            "src/pieria/fine.py": "def f():\n" + "    x = 1\n" * (FUNCTION_LINES - 1),
        }
    )
    assert over_budget(root) == [
        "src/pieria/deep.py: f has 61 lines, at most 60",
        "src/pieria/long.py: 401 lines, at most 400",
        "src/pieria/wide.py: class Wide has 21 methods, at most 20",
    ]
