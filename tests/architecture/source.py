"""Reads a source tree for the rules: files, syntax trees, names.

A rule is a function from a root to findings, so that a test can plant a tree which breaks it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def files(root: Path, *folders: str, suffixes: tuple[str, ...] = (".py",)) -> Iterator[Path]:
    """Yield the files of some folders (or the files named), in order, without caches."""
    for folder in folders:
        start = root / folder
        found = [start] if start.is_file() else sorted(start.rglob("*"))
        for path in found:
            if path.suffix in suffixes and path.is_file() and "__pycache__" not in path.parts:
                yield path


def parsed(root: Path, *folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield each Python file's path below the root, with slashes, and its syntax tree."""
    for path in files(root, *folders):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_bytes(), filename=str(path))


def definitions(tree: ast.AST) -> Iterator[Definition]:
    """Yield every function, method and class, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a chain of names, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""
