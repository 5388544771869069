"""Read-only programs that a tool starts itself, each ended with its deadline or when its reader has had enough.

They get no input but what is given, nothing of our environment, and a session of their own, so
that a key pressed in the terminal does not reach them.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from time import monotonic

CHUNK = 1 << 16


class OutOfTime(Exception):
    """The deadline passed; what was read so far counts."""


class Failed(Exception):
    """The program could not do it; the text is what it said."""


def environment() -> dict[str, str]:
    """Return the fixed environment: no config of the person or the system, no prompts, plain messages."""
    return {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def records(
    argv: Sequence[str], separator: bytes, *, cwd: str, until: float, data: bytes = b""
) -> Generator[bytes, None, None]:
    """Yield what a program writes, cut at the separator. Raises OutOfTime, Failed, and OSError where it can't start.

    An exit code above 1 is a failure only with a message: ripgrep's 2 may just mean that a file was unreadable.
    """
    import subprocess
    from tempfile import TemporaryFile

    with TemporaryFile() as given, TemporaryFile() as said:
        given.write(data)
        given.seek(0)
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=environment(),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        assert child.stdout is not None
        try:
            yield from _split(_chunks(child.stdout.fileno(), until), separator)
            code = child.wait(timeout=max(0.1, until - monotonic()))
        except subprocess.TimeoutExpired:
            raise OutOfTime from None
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            child.stdout.close()
        said.seek(0)
        words = said.read(4000).decode("utf-8", "replace").strip()
        if code not in {0, 1} and (words or code < 0):
            raise Failed(words or f"ended by signal {-code}")


def _chunks(descriptor: int, until: float) -> Iterator[bytes]:
    from select import POLLIN, poll

    waiting = poll()
    waiting.register(descriptor, POLLIN)
    while True:
        left = until - monotonic()
        if left <= 0 or not waiting.poll(left * 1000):
            raise OutOfTime
        chunk = os.read(descriptor, CHUNK)
        if not chunk:
            return
        yield chunk


def _split(chunks: Iterator[bytes], separator: bytes) -> Iterator[bytes]:
    waiting: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(separator)
        for each in whole:
            yield b"".join([*waiting, each]) if waiting else each
            waiting = []
        if rest:
            waiting.append(rest)
    if waiting:
        yield b"".join(waiting)
