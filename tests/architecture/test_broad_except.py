"""Errors: a broad `except` stands in two places, where outcomes are made and where the program ends."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT, dotted, parsed

PLACES = {"src/pieria/runtime/perform.py", "src/pieria/cli.py"}
BROAD = {"Exception", "BaseException", "ExceptionGroup", "BaseExceptionGroup"}


def broad_excepts(root: Path) -> list[str]:
    return [
        f"{place}:{node.lineno}: {what}"
        for place, tree in parsed(root, "src")
        if place not in PLACES
        for node in ast.walk(tree)
        if (what := broad(node))
    ]


def broad(node: ast.AST) -> str:
    """Return what is broad about a node: an except clause, or `suppress(Exception)`; "" when nothing is."""
    if isinstance(node, ast.ExceptHandler):
        return "except" if node.type is None else f"except {hit}" if (hit := widest(node.type)) else ""
    if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] == "suppress":
        return next((f"suppress({hit})" for argument in node.args if (hit := widest(argument))), "")
    return ""


def widest(node: ast.expr) -> str:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return next((name for part in parts if (name := dotted(part).split(".")[-1]) in BROAD), "")


def test_only_perform_and_the_command_line_catch_everything() -> None:
    assert broad_excepts(ROOT) == []


def test_broad_clauses_are_found_in_every_spelling(plant: Plant) -> None:
    clause = "try:\n    pass\nexcept {}:\n    pass\n"
    root = plant(
        {
            "src/pieria/a.py": clause.replace(" {}", ""),
            "src/pieria/b.py": clause.format("Exception as e"),
            "src/pieria/c.py": clause.format("(OSError, builtins.BaseException)"),
            "src/pieria/d.py": "with contextlib.suppress(Exception):\n    pass\n",
            "src/pieria/e.py": clause.format("(OSError, ValueError)"),
            "src/pieria/runtime/perform.py": clause.format("Exception"),
        }
    )
    assert broad_excepts(root) == [
        "src/pieria/a.py:3: except",
        "src/pieria/b.py:3: except Exception",
        "src/pieria/c.py:3: except BaseException",
        "src/pieria/d.py:1: suppress(Exception)",
    ]
