"""Make the world out of reach while a replay runs: sockets, processes, clock, randomness and writing raise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

REFUSED = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "ctypes.", "pty.")


class ReachedOut(RuntimeError):
    """A replay tried to use the world: it would no longer be a function of the log."""


@contextmanager
def offline() -> Iterator[None]:
    """Raise ReachedOut at any use of network, processes, clock, randomness or files opened for writing."""
    import os
    import random
    import time

    sealed = [True]

    def watch(event: str, args: tuple[object, ...]) -> None:
        if not sealed:
            return
        if event.startswith(REFUSED):
            raise ReachedOut(f"a replay may not use {event}")
        if event == "open" and len(args) > 2 and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR):
            raise ReachedOut(f"a replay may not write {args[0]!r}")

    def refuse(*_: object, **__: object) -> object:
        raise ReachedOut("a replay may not use the clock or randomness")

    sources = [
        (time, name) for name in ("time", "time_ns", "monotonic", "monotonic_ns", "gmtime", "localtime", "sleep")
    ]
    sources += [(random, name) for name in ("random", "randint", "randrange", "choice", "getrandbits")]
    sources.append((os, "urandom"))
    kept = [(place, name, getattr(place, name)) for place, name in sources]
    sys.addaudithook(watch)  # a hook can't be taken away: the empty list lets everything pass again
    for place, name, _ in kept:
        setattr(place, name, refuse)
    try:
        yield
    finally:
        sealed.clear()
        for place, name, original in kept:
            setattr(place, name, original)
