"""Words: nothing unfinished, no path of one particular machine, no test that replaces the code it tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT, dotted, files, parsed

# A class of one letter in each, so that this file does not find itself.
UNFINISHED = re.compile(r"\bTO[D]O\b|\bFI[X]ME\b|\bX[X]X\b|NotImplemented[E]rror")
PLACES = re.compile(r"/wor[k]/|/roo[t]/|\.librar[y]")

TEXTS = (".py", ".md", ".toml", ".sh", ".json", ".jsonl", ".txt", ".yml", ".yaml", ".cfg")
FOLDERS = ("src", "tests", "docs", "bench", "examples")

PATCHERS = {"mock", "unittest.mock", "pytest_mock"}
SAFE_MONKEYPATCH = {"setenv", "delenv", "chdir", "syspath_prepend", "context", "undo"}
"""Of monkeypatch, what changes the environment of a test, not the code under test."""


def bad_words(root: Path) -> list[str]:
    places = [folder for folder in FOLDERS if (root / folder).exists()]
    places += sorted(path.name for path in root.glob("*.md"))
    places += [name for name in ("dev", "pyproject.toml", "requirements.lock", ".ci/run") if (root / name).exists()]
    found = []
    for path in files(root, *places, suffixes=(*TEXTS, "")):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            hits = [*UNFINISHED.findall(line), *PLACES.findall(line)]
            found += [f"{path.relative_to(root).as_posix()}:{number}: {hit}" for hit in hits]
    return found


def replaced_code(root: Path) -> list[str]:
    """Find mocks and patches in tests: an import of a mock library, or monkeypatch used on code."""
    return [
        f"{place}:{line}: {what}"
        for place, tree in parsed(root, "tests")
        for node in ast.walk(tree)
        for line, what in replacement(node)
    ]


def replacement(node: ast.AST) -> list[tuple[int, str]]:
    match node:
        case ast.Import(names=names):
            return [(node.lineno, f"import {name.name}") for name in names if name.name in PATCHERS]
        case ast.ImportFrom(module=module, names=names):
            whole = [f"{module}.{name.name}" for name in names]
            return [(node.lineno, f"from {module}") for name in whole if module in PATCHERS or name in PATCHERS][:1]
        case ast.arg(arg="mocker"):
            return [(node.lineno, "mocker")]
        case ast.Call(func=ast.Attribute(value=value, attr=attr)):
            if "monkeypatch" in dotted(value).lower() and attr not in SAFE_MONKEYPATCH:
                return [(node.lineno, f"monkeypatch.{attr}")]
    return []


def test_no_text_is_unfinished_or_names_a_private_place() -> None:
    assert bad_words(ROOT) == []


def test_no_test_replaces_code() -> None:
    assert replaced_code(ROOT) == []


def test_unfinished_texts_and_private_places_are_found(plant: Plant) -> None:
    later, never, place, store = (
        "TO{}DO".format(""),
        "NotImplemented{}Error".format(""),
        f"/{'work'}/",
        f".{'library'}",
    )
    root = plant(
        {
            "src/pieria/a.py": f"# {later}: later\nraise {never}\n",
            "docs/how.md": f"see {place}main\n",
            "README.md": f"~/{store}\n",
            "tests/test_a.py": f"x = 1  # FIX{'ME'}\n",
            "src/pieria/fine.py": "workspace = 'a/work'\n",
        }
    )
    assert bad_words(root) == [
        f"src/pieria/a.py:1: {later}",
        f"src/pieria/a.py:2: {never}",
        f"tests/test_a.py:1: FIX{'ME'}",
        f"docs/how.md:1: {place}",
        f"README.md:1: {store}",
    ]


def test_mocks_and_patches_are_found(plant: Plant) -> None:
    root = plant(
        {
            "tests/a.py": "from unittest import mock\n",
            "tests/b.py": "import unittest.mock\n",
            "tests/c.py": "from unittest.mock import patch\n",
            "tests/d.py": "def test_x(monkeypatch, mocker):\n    monkeypatch.setattr('a.b', 1)\n",
            "tests/e.py": "import patch\ndef test(monkeypatch):\n    monkeypatch.setenv('A', 'b')\n",
        }
    )
    assert replaced_code(root) == [
        "tests/a.py:1: from unittest",
        "tests/b.py:1: import unittest.mock",
        "tests/c.py:1: from unittest.mock",
        "tests/d.py:1: mocker",
        "tests/d.py:2: monkeypatch.setattr",
    ]
