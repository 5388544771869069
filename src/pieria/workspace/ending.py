"""The end of a command by force: TERM, a grace, KILL.

Invariant: what is killed carries the job's mark or is in its live supervisor's session; the supervisor itself is
spared, so that it can write the exit record.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

from pieria.core.ports import Spawned
from pieria.workspace import environment, living, spool, supervisor

LOOK_S = 0.02
LAST_S = 3.0
"""How long KILL is repeated: against a process that forks faster than one look, not against one stuck in the kernel."""
NAMED = 50
SCRIPT = b"sh\0-c\0" + supervisor.SCRIPT.encode()


async def end(spawned: Spawned, mark: str, *, folder: str, grace_s: float, limit_bytes: int) -> None:
    """End all that a command started. Returns when nothing of it lives, or nothing more can be done."""
    told: dict[tuple[int, int], str] = {}
    first = True
    until = time.monotonic() + grace_s
    while (members := await asyncio.to_thread(_members, spawned, mark)) or supervisor_of(spawned):
        if first:
            _tell_group(spawned, signal.SIGTERM)
        head = supervisor_of(spawned)
        for one in members:
            if (one.pid, one.start_time) not in told:
                told[one.pid, one.start_time] = f"{one.name} {one.pid}"
                if not (first and head and one.group == head.group):
                    _tell(one.pid, signal.SIGTERM)
        first = False
        spool.cut_output(folder, limit_bytes)
        if time.monotonic() > until:
            break
        await asyncio.sleep(LOOK_S)
    else:
        _note(folder, told)
        return
    until = time.monotonic() + LAST_S
    while (members := await asyncio.to_thread(_members, spawned, mark)) or supervisor_of(spawned):
        for one in members:
            told.setdefault((one.pid, one.start_time), f"{one.name} {one.pid}")
            _tell(one.pid, signal.SIGKILL)
        _tell_group(spawned, signal.SIGCONT)  # a supervisor that its command had stopped has to go on
        spool.cut_output(folder, limit_bytes)
        if time.monotonic() > until:
            break
        await asyncio.sleep(LOOK_S)
    _note(folder, told)
    if head := supervisor_of(spawned):
        _tell(head.pid, signal.SIGKILL)  # then the result is unknown, but the call ends


def supervisor_of(spawned: Spawned) -> living.Living | None:
    """Return the supervisor if it lives, and not another process that has its pid by now."""
    found = living.look(spawned.pid)
    return found if found and found.start_time == spawned.start_time else None


def bears(pid: int, entry: bytes) -> bool:
    """Whether a process was started with an environment in which `entry` begins a line."""
    return b"\0" + entry in b"\0" + living.environment(pid)


def _members(spawned: Spawned, mark: str) -> list[living.Living]:
    """Return what a command started and still lives, without its supervisor and the supervisor's watch."""
    head = supervisor_of(spawned)
    session = head.session if head else -1  # without it, the number may be another session's by now
    entry = f"{environment.MARK}={mark}\0".encode()
    spared = {spawned.pid if head else -1, os.getpid()}
    found = [
        one for one in living.everyone() if one.pid not in spared and (one.session == session or bears(one.pid, entry))
    ]
    watch = {one.pid for one in found if living.command_line(one.pid).startswith(SCRIPT)}
    return [one for one in found if one.pid not in watch and one.parent not in watch]


def _tell(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _tell_group(spawned: Spawned, number: signal.Signals) -> None:
    if head := supervisor_of(spawned):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(head.group, number)


def _note(folder: str, told: dict[tuple[int, int], str]) -> None:
    names = list(told.values())
    for name in names[:NAMED]:
        spool.note(folder, spool.KILLED, name)
    if len(names) > NAMED:
        spool.note(folder, spool.KILLED, f"and {len(names) - NAMED} more")
