"""Markers of secrets in what a model writes: <<secret:NAME>>, or <<secret:NAME:form>>."""

from __future__ import annotations

OPEN, CLOSE = "<<secret:", ">>"


def named_secrets(text: str) -> tuple[str, ...]:
    """The names in all markers of a text, each once, in order."""
    names: dict[str, None] = {}
    for piece in text.split(OPEN)[1:]:
        name, closed, _ = piece.partition(CLOSE)
        if closed:
            names.setdefault(name.partition(":")[0])
    return tuple(names)
