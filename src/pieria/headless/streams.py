"""Standard output and error as they are given: closed, full, or a pipe that nobody reads. Writing never raises."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TextIO


class Stream:
    """One of them. `problem` is why nothing more is written; `on_broken` is called once, when that is found out."""

    def __init__(self, file: TextIO | None, on_broken: Callable[[], object] = lambda: None) -> None:
        self.problem: OSError | None = None
        self.on_broken = on_broken
        self._file = file

    @property
    def is_terminal(self) -> bool:
        """Whether a person's terminal shows what is written."""
        return self._file is not None and self._file.isatty()

    def write(self, words: str | bytes) -> None:
        """Write and flush: a reader may stop at any line."""
        if self._file is None or self.problem is not None:
            return
        try:
            self._file.buffer.write(words.encode("utf-8", "replace") if isinstance(words, str) else words)
            self._file.buffer.flush()
        except OSError as problem:
            self.problem = problem
            discard_rest(self._file.fileno())
            self.on_broken()


def discard_rest(descriptor: int) -> None:
    """Let what is still in buffers go nowhere, so that it fails no second time when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
