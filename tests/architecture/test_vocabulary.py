"""Vocabulary: the words that GLOSSARY.md rejects are not in the names of our modules, classes and functions.

Envelope fields, wire names, git's own words, arguments, variables and comments are free. A name that must
carry a rejected word because someone else chose it stands in WIRE, with the file that speaks that wire.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT, definitions, parsed

REJECTED = {
    "thread": "session, agent or report",
    "conversation": "session",
    "chat": "session",
    "subagent": "agent",
    "soul": "agent",
    "persona": "role",
    "run": "turn, or what is done in particular",
    "round": "turn",
    "iteration": "step",
    "function": "tool",
    "action": "tool call or effect",
    "observation": "result",
    "op": "command, event or effect",
    "notification": "event or report",
    "task": "job, assignment or turn (the lab has tasks)",
    "permission": "approval",
    "confirmation": "approval",
    "snapshot": "view",
    "history": "context",
    "condensation": "compaction",
    "checkpoint": "worktree, commit or tree",
    "manager": "what it does",
    "helper": "what it does",
    "util": "what it does",
    "utils": "what it does",
    "handler": "what it does",
    "service": "what it does",
    "info": "what it tells",
}
"""Rejected word to what to say instead."""

WIRE = {
    "src/pieria/models/chat.py": {"chat", "function"},  # Chat Completions calls its tools functions
    "src/pieria/models/responses.py": {"conversation", "function"},
    "src/pieria/core/ports.py": {"run"},  # a port's verb for "do this one read-only call"
    "src/pieria/tools/": {"run"},  # its implementations
}
"""File (or folder, with a slash at its end) to the words that its names may have."""


def words(name: str) -> list[str]:
    """Split CamelCase and snake_case: `HTTPInfo_op2` is http, info, op."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def allowed(place: str) -> set[str]:
    found = (leave for where, leave in WIRE.items() if place == where or (where[-1] == "/" and place.startswith(where)))
    return {"task"}.union(*found) if place.startswith("src/pieria/lab/") else set().union(*found)


def rejected_names(root: Path) -> list[str]:
    found = []
    for place, tree in parsed(root, "src/pieria"):
        parts = place.removeprefix("src/pieria/").removesuffix(".py").split("/")
        for name in (parts[-1] if parts[-1] != "__init__" else "".join(parts[-2:-1]), *defined(tree)):
            bad = [word for word in words(name) if word in REJECTED and word not in allowed(place)]
            found += [f"{place}: `{name}` says {word}; say {REJECTED[word]}" for word in bad]
    return found


def defined(tree: ast.Module) -> list[str]:
    return [node.name for node in definitions(tree)]


def test_names_use_the_glossarys_words() -> None:
    assert rejected_names(ROOT) == []


def test_rejected_words_are_found_however_they_are_spelt(plant: Plant) -> None:
    root = plant(
        {
            "src/pieria/core/session_manager.py": "class OpHandler:\n    def getHTTPInfo(self): ...\n",
            "src/pieria/utils/__init__.py": "",
            "src/pieria/models/chat.py": "def chat_function(history): return history\n",
            "src/pieria/core/fine.py": "def informed(options, runner): return options\nclass Ruling: ...\n",
        }
    )
    assert rejected_names(root) == [
        "src/pieria/core/session_manager.py: `session_manager` says manager; say what it does",
        "src/pieria/core/session_manager.py: `OpHandler` says op; say command, event or effect",
        "src/pieria/core/session_manager.py: `OpHandler` says handler; say what it does",
        "src/pieria/core/session_manager.py: `getHTTPInfo` says info; say what it tells",
        "src/pieria/utils/__init__.py: `utils` says utils; say what it does",
    ]


def test_the_glossary_names_each_rejected_word() -> None:
    glossary = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8").lower()
    assert [word for word in REJECTED if not re.search(rf"\b{word}s?\b", glossary)] == []
