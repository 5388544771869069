"""Secrets of our own environment. Invariant: after `take_keys` and `wipe` neither a child nor /proc shows them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, MutableMapping

NAMES = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECURITY_TOKEN"})
ENDS = (
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "AUTH_KEY",
    "CREDENTIALS",
    "PASSPHRASE",
    "PASSWORD",
    "PRIVATE_KEY",
    "SECRET",
    "SECRET_KEY",
    "TOKEN",
)


def is_key(name: str) -> bool:
    """Whether a variable of this name holds a secret, as far as a name can tell."""
    upper = name.upper()
    return upper in NAMES or any(upper == end or upper.endswith(f"_{end}") for end in ENDS)


def take_keys(environ: MutableMapping[str, str]) -> dict[str, str]:
    """Take the secrets out of an environment, usually os.environ, and return them; `wipe` is for later."""
    return {name: environ.pop(name) for name in sorted(environ) if is_key(name)}


def wipe(names: Iterable[str]) -> None:
    """Overwrite the values of removed variables where the kernel put them, since /proc/PID/environ shows that memory.

    Only on Linux. To be done before the first command, but not before the first request: it loads ctypes. The block is
    found by the addresses in /proc/self/stat, since getenv no longer knows a removed name.
    """
    wanted = {name.encode() for name in names}
    if sys.platform != "linux" or not wanted:
        return
    import ctypes

    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])  # env_start, env_end; zero where the kernel hides them
    place = start
    for entry in ctypes.string_at(start, end - start).split(b"\0") if start else ():
        name, _, value = entry.partition(b"=")
        if name in wanted:
            ctypes.memset(place + len(name) + 1, 0, len(value))
        place += len(entry) + 1
