"""The command line: one late import a verb, and the one place where an error becomes words and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pieria import __version__

VERBS = {
    "exec": "run a prompt without a terminal until the agent is done",
    "resume": "go on with a session where it stopped",
    "sessions": "list sessions, newest first",
    "log": "verify, show, follow or measure a session's log",
    "replay": "rebuild every request of a log offline, byte for byte",
    "trust": "let a project's own configuration act in its folder",
    "demo": "a real session in a scratch repository: no key, no network",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _complete_streams()
    try:
        try:
            return _dispatch(words)
        finally:
            sys.stdout.flush()  # here its failure can still be told
    except BrokenPipeError:
        return _end_quietly()
    except KeyboardInterrupt:
        return 130
    except Exception as problem:
        return _explain(problem)


def _dispatch(words: list[str]) -> int:
    if words[:1] in (["--version"], ["-V"]):
        sys.stdout.write(f"pieria {__version__}\n")
        return 0
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_help()) if words else sys.stderr.write(_nothing_asked())
        return 0 if words else 2
    verb = words[0]
    if verb not in VERBS:
        return _unknown(verb)
    import gc
    from importlib import import_module

    gc.set_threshold(
        50_000, 20, 20
    )  # importing makes many objects and no garbage: looking for it costs 3 ms of the start
    module = import_module(f"pieria.commands.{verb}")
    code = module.main(words[1:])
    assert isinstance(code, int)
    return code


def _complete_streams() -> None:
    """Open what was closed of descriptors 0 to 2: else the next file opened, a log, would be standard error.

    What a terminal's encoding can't show is written out, and ends no command.
    """
    import os
    from io import BufferedWriter, FileIO, TextIOWrapper

    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = TextIOWrapper(BufferedWriter(FileIO(1, "w", closefd=False)), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = TextIOWrapper(BufferedWriter(FileIO(2, "w", closefd=False)), encoding="utf-8")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _help() -> str:
    width = max(map(len, VERBS)) + 2
    lines = "\n".join(f"  {verb:<{width}}{what}" for verb, what in VERBS.items())
    return (
        f"pieria {__version__}: a terminal coding agent with one append-only event log.\n\n"
        f"usage: pieria VERB [...]        pieria VERB --help\n\n{lines}\n\n  --version\n"
    )


def _nothing_asked() -> str:
    return (
        "pieria: nothing to do: there is no interactive session in this version\n"
        "hint: pieria exec 'what to do'   (pieria --help lists every verb)\n"
    )


def _unknown(verb: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(verb, VERBS, 1)
    hint = f"did you mean 'pieria {near[0]}'?" if near else "to run a prompt: pieria exec 'PROMPT'"
    shown = verb if len(verb) <= 40 else verb[:40] + "…"
    sys.stderr.write(f"pieria: there is no verb {shown!r}\nhint: {hint}\n")
    return 2


def _end_quietly() -> int:
    """A closed pipe is the reader's choice: nothing more is written, not even at interpreter exit."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return 141


def _explain(problem: Exception) -> int:
    from pieria.core.errors import PieriaError

    if isinstance(problem, PieriaError):
        hint = f"hint: {problem.hint}\n" if problem.hint else ""
        sys.stderr.write(f"pieria: {problem}\n{hint}")
        return problem.exit_code
    if isinstance(problem, OSError) and problem.errno is not None and problem.filename is None:
        _end_quietly()
        sys.stderr.write(f"pieria: the output can't be written: {problem.strerror}\n")
        return 1
    import traceback

    sys.stderr.write("".join(traceback.format_exception(problem)))
    sys.stderr.write(
        "pieria: this is a fault of pieria itself; what was acknowledged is in the session's log\n"
        "hint: 'pieria resume --last' goes on; please report the lines above\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
