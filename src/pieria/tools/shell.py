"""`shell`: a command to examine and a command's end to word. Processes runs it; nothing here does."""

from __future__ import annotations

from collections.abc import Mapping

from pieria.core.output import clean
from pieria.core.ports import Ended, Place
from pieria.core.values import Details, Examined, ToolResult, ToolSpec
from pieria.tools.base import ChangesNothing, RunsNothing, fingerprint, refused, size, string
from pieria.tools.specs import LIMIT_S
from pieria.tools.specs import SHELL as SPEC

COMMAND_BYTES = 100_000
"""A single argument of a program can hold 128 KiB on Linux."""

LITERAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=@%+,")
"""What means itself outside quotes in every shell; all else counts as syntax."""
SYNTAX = frozenset("$`\\!")
"""What may mean something inside double quotes."""
QUOTES = frozenset("'\"")
BLANKS = " \t\n"
RESERVED = {"in", "time", "coproc"}.union(
    ("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function")
)


class Shell(RunsNothing, ChangesNothing):
    """The tool `shell`."""

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        command = string(arguments, "command")
        given = arguments.get("timeout_s", LIMIT_S)
        assert isinstance(given, int | float)
        timeout_s = float(min(given, LIMIT_S))
        parts = [command, place.root, repr(timeout_s)]
        if problem := _problem(command, timeout_s):
            return refused(SPEC, problem, parts)
        return Examined(
            access="shell",
            action=fingerprint(SPEC, parts),
            command=command,
            words=words(command),
            cwd=place.root,
            timeout_s=timeout_s,
        )

    def ended(self, facts: Examined, outcome: Ended) -> ToolResult:
        text = clean(outcome.head, outcome.tail, outcome.output_bytes)
        line = f"[{_end(facts, outcome)}]"
        gap = "" if not text or text.endswith("\n") else "\n"
        return ToolResult(
            text=f"{text}{gap}{line}",
            error=outcome.exit_code != 0 or outcome.timed_out,
            details=Details(
                exit_code=outcome.exit_code,
                signal=outcome.signal,
                timed_out=outcome.timed_out,
                output_bytes=outcome.output_bytes,
                output_sha256=outcome.output_sha256,
                killed=outcome.killed,
                reattached=outcome.reattached,
            ),
        )


def _problem(command: str, timeout_s: float) -> str:
    if not command.strip():
        return "The command is empty."
    if "\0" in command:
        return "A command can't hold a NUL character."
    if len(command.encode()) > COMMAND_BYTES:
        return f"The command is over {COMMAND_BYTES} bytes: write a file and run that."
    return "timeout_s must be more than 0." if timeout_s <= 0 else ""


def words(command: str) -> tuple[str, ...] | None:
    """Return the words of a command that has no shell syntax at all, else None. In doubt it is None."""
    found: list[str] = []
    word: str | None = None
    quote = ""
    for each in f"{command.strip(BLANKS)} ":
        if quote:
            if each == quote:
                quote = ""
            elif not each.isprintable() or (quote == '"' and each in SYNTAX):
                return None
            else:
                word = (word or "") + each
        elif each in QUOTES:
            quote, word = each, word or ""
        elif each in LITERAL:
            word = (word or "") + each
        elif each not in " \t":
            return None
        elif word is not None:
            found.append(word)
            word = None
    if quote or not found or found[0] in RESERVED or "=" in found[0] or found[0].startswith("%"):
        return None
    return tuple(found)


def _end(facts: Examined, outcome: Ended) -> str:
    """Say in one line how it ended, and what to do where that is not plain."""
    stopped = f"; stopped: {', '.join(outcome.killed)}" if outcome.killed else ""
    if outcome.never_ran:
        return "never ran: nothing happened; repeat it if it is still needed"
    if outcome.timed_out:
        return f"timed out after {facts.timeout_s:g} s{stopped}"
    if outcome.too_much:
        return f"stopped: too much output ({size(outcome.output_bytes)}); send it to a file or filter it{stopped}"
    if outcome.stopped:
        return f"interrupted: it may have done part of its work{stopped}"
    if outcome.unknown:
        return (
            "interrupted: outcome unknown. It may have run wholly, in part or not at all: "
            f"check what it changed before you repeat it{stopped}"
        )
    if outcome.signal:
        end = f"ended by {outcome.signal}"
    elif outcome.exit_code is None:
        end = "ended, exit code unknown: check what it changed before you repeat it"
    else:
        end = f"exit {outcome.exit_code}"
    nothing = ", no output" if not outcome.output_bytes else ""
    return f"{end}{nothing}{', collected after a restart' if outcome.reattached else ''}{stopped}"
