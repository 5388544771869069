"""Live processes as the system shows them. Invariant: a pid alone names nobody; with start time and boot id it does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from pieria.core.values import Value

BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Living(Value, frozen=True, gc=False):
    """One live process; zombies are not alive. `start_time` is in units of this system, the same on each look."""

    pid: int
    parent: int
    group: int
    session: int
    start_time: int
    name: str


def boot_id() -> str:
    """Return what differs after each boot."""
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "kern.boottime")
    return _read(BOOT_ID).decode().strip()


def umask() -> int:
    """Return our umask, where there is a way without changing it for an instant, which other threads would notice."""
    if sys.platform == "darwin":
        mask = os.umask(0o077)
        os.umask(mask)
        return mask
    line = next(line for line in _read("/proc/self/status").splitlines() if line.startswith(b"Umask:"))
    return int(line.split()[1], 8)


def look(pid: int) -> Living | None:
    """Return the live process with this pid."""
    if sys.platform == "darwin":
        return next(_listed("-p", str(pid)), None)
    try:
        return _parsed(pid, _read(f"/proc/{pid}/stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def everyone() -> Iterator[Living]:
    """Yield each live process, in no order."""
    if sys.platform == "darwin":
        yield from _listed("-A")
        return
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := look(int(name))):
            yield found


def environment(pid: int) -> bytes:
    """Return a process's first environment, NUL between its entries; empty where that can't be read."""
    return _of(pid, "environ")


def command_line(pid: int) -> bytes:
    """Return a process's arguments, NUL after each; empty where that can't be read."""
    return _of(pid, "cmdline")


def _of(pid: int, what: str) -> bytes:
    try:
        return _read(f"/proc/{pid}/{what}")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def _parsed(pid: int, stat: bytes) -> Living | None:
    """Read /proc/PID/stat; the name in parentheses may itself hold spaces and parentheses."""
    begin, end = stat.index(b"("), stat.rindex(b")")
    field = stat[end + 2 :].split()
    if field[0] in {b"Z", b"X"}:
        return None
    name = stat[begin + 1 : end].decode(errors="replace")
    return Living(pid, int(field[1]), int(field[2]), int(field[3]), int(field[19]), name)


def _listed(*which: str) -> Iterator[Living]:
    """Read `ps`: the way of systems without /proc. The start time is the number that its words hash to."""
    from hashlib import sha256

    columns = "pid=,ppid=,pgid=,stat=,lstart=,comm="
    for line in _output("ps", *which, "-o", columns).splitlines():
        pid, parent, group, stat, *start, name = line.split(None, 9)
        if stat.startswith("Z"):
            continue
        try:
            session = os.getsid(int(pid))
        except OSError:
            continue
        begun = int.from_bytes(sha256(" ".join(start).encode()).digest()[:6], "big")
        yield Living(int(pid), int(parent), int(group), session, begun, os.path.basename(name))


def _output(*argv: str) -> str:
    import subprocess

    given = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, env=given)
    return done.stdout.decode(errors="replace").strip()
