"""Arguments that verbs share, and reading the prompt: bad bytes are named, never guessed at."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from pieria.core.errors import UsageError

MOST_PROMPT_BYTES = 50_000_000


def parser(verb: str, description: str) -> argparse.ArgumentParser:
    """A parser without abbreviations, whose errors end with a hint and exit code 2."""
    return _Parser(prog=f"pieria {verb}", description=description, allow_abbrev=False, formatter_class=_formatter)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:  # type: ignore[explicit-override]
        raise UsageError(f"{self.prog.removeprefix('pieria ')}: {message}", f"{self.prog} --help")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """With a width of its own: to ask the terminal, argparse would import compression libraries at each start."""
    return argparse.HelpFormatter(prog, width=100, max_help_position=32)


def add_work_options(options: argparse.ArgumentParser) -> None:
    """Options of every verb that lets agents work."""
    options.add_argument("--cwd", metavar="D", help="work in this folder")
    options.add_argument("--model", metavar="[PROTOCOL:]NAME", help="model; protocols: chat, scripted:FILE")
    options.add_argument("--base-url", metavar="URL", help="where the model is served, e.g. http://127.0.0.1:8080/v1")
    options.add_argument("--mode", choices=("plan", "ask", "edits", "full"), help="what agents may do unasked")
    options.add_argument("--allow", action="append", metavar="RULE", default=[], help="e.g. 'shell(pytest *)'")
    options.add_argument("--deny", action="append", metavar="RULE", default=[], help="e.g. 'edit(migrations/**)'")
    options.add_argument("--trust", action="store_true", help="let the project's own config act in this run")
    options.add_argument("--approve", action="append", metavar="ID", default=[], help="allow an open question")
    options.add_argument("--deny-id", action="append", metavar="ID", default=[], help="refuse an open question")
    options.add_argument("--max-steps", type=_count, metavar="N", help="model calls of the whole team")
    options.add_argument("--max-tokens", type=_count, metavar="N", help="tokens of the whole team")
    options.add_argument("--timeout", type=_seconds, metavar="S", help="seconds for this run")
    options.add_argument("--json", action="store_true", help="print the log's records, one JSON object a line")
    options.add_argument("--progress", action="store_true", help="with --json: x.progress lines as text streams")
    options.add_argument("--quiet", action="store_true", help="print the answer and nothing else")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def read_prompt(words: str | None, file: str | None) -> str | None:
    """The prompt from the command line, a file or (for `-`) standard input; None when none is given."""
    if words is not None and file is not None:
        raise UsageError("a prompt and --prompt-file are given", "give one of them")
    if file is not None:
        return _decode(_read_file(file), f"the prompt file {file}")
    if words == "-":
        return _decode(_read_stdin(), "standard input")
    if words is None:
        return None
    return _decode(words.encode("utf-8", "surrogateescape"), "the prompt")


def _read_file(file: str) -> bytes:
    try:
        with open(file, "rb") as source:
            return source.read(MOST_PROMPT_BYTES + 1)
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise UsageError(f"the prompt file {file} can't be read: {why}", "name a readable text file") from problem


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise UsageError("standard input is closed", "give the prompt as an argument, or with --prompt-file")
    try:
        return sys.stdin.buffer.read(MOST_PROMPT_BYTES + 1)
    except OSError as problem:
        raise UsageError(
            f"standard input can't be read: {problem.strerror}", "give the prompt as an argument"
        ) from None


def _decode(data: bytes, source: str) -> str:
    if len(data) > MOST_PROMPT_BYTES:
        raise UsageError(f"{source} is longer than {MOST_PROMPT_BYTES} bytes", "put it into a file of the project")
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        byte = data[problem.start]
        raise UsageError(
            f"{source} is not UTF-8: byte 0x{byte:02x} at {problem.start}", "convert it, or name the file for the agent"
        ) from None
    if not text.strip():
        raise UsageError(f"{source} is empty", "say what to do")
    return text
