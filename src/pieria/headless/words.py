"""Words for a person's terminal: nothing that a model or a file wrote can move the cursor, hide or forge a line."""

from __future__ import annotations

from pieria.core.ports import Texts
from pieria.core.values import Blob, Text
from pieria.core.view import Question

MOST_CHARS = 500


def escaped(text: str) -> str:
    """One line: everything that is not printable stands as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def plain(text: str) -> str:
    """Text of many lines: tabs and newlines as they are, other control and direction characters as escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else escaped(c) for c in text)


def shorten(text: Text, most: int = 100) -> str:
    """One line of at most `most` characters."""
    if isinstance(text, Blob):
        return f"({text.len} bytes)"
    line = escaped(text.strip()[: most + 1])
    return line if len(line) <= most else line[: most - 1] + "…"


def one_line(text: str) -> str:
    """The first line of a text, shortened."""
    return shorten(text.strip().split("\n", 1)[0], 160)


def question_lines(question: Question, texts: Texts) -> list[str]:
    """An open question with the whole of what would be done: each line of a command, or the diff."""
    facts = question.facts
    lines = [f"approval {question.id}: {question.agent} wants {escaped(question.tool)} ({escaped(question.why)})"]
    what = texts.text(facts.command) or texts.text(facts.diff)
    if not what:
        what = "\n".join(path.real for path in facts.paths)
    elif facts.paths and not texts.text(facts.command):
        lines += [f"    {escaped(path.real)}" for path in facts.paths]
    shown = what.rstrip("\n").split("\n")
    for line in shown:
        lines += [f"  | {piece}" for piece in _pieces(escaped(line))]
    return lines


def _pieces(line: str) -> list[str]:
    """A long line in several, nothing left out."""
    return [line[at : at + MOST_CHARS] for at in range(0, len(line), MOST_CHARS)] or [""]
