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
from collections.abc import AsyncIterator

from pieria.core.ports import Spawned
from pieria.workspace import environment, living, spool, supervisor

LOOK_S = 0.02
LAST_S = 3.0
"""How long KILL is repeated: against a process that forks faster than one look, not against one stuck in the kernel."""
NAMED = 50
SCRIPT = b"sh\0-c\0" + supervisor.SCRIPT.encode()


async def end(spawned: Spawned, mark: str, *, folder: str, grace_s: float, limit_bytes: int) -> None:
    """End all that a command started. Returns when nothing of it lives, or nothing more can be done."""
    head = supervisor_of(spawned)
    if head and head.session == os.getsid(0):  # no supervisor of ours is: never sweep our own session
        return
    group, session = (head.group, head.session) if head else (-1, -1)
    told: dict[tuple[int, int], str] = {}

    def news(members: list[living.Living]) -> list[living.Living]:
        found = [one for one in members if (one.pid, one.start_time) not in told]
        told.update({(one.pid, one.start_time): f"{one.name} {one.pid}" for one in found})
        return found

    async def left(until: float) -> AsyncIterator[list[living.Living]]:
        """Yield what still lives, again and again until nothing does or the time is over."""
        while (members := await asyncio.to_thread(_members, spawned, mark, session=session)) or supervisor_of(spawned):
            yield members
            spool.cut_output(folder, limit_bytes)
            if time.monotonic() > until:
                return
            await asyncio.sleep(LOOK_S)

    first = True
    async for members in left(time.monotonic() + grace_s):
        new = news(members)
        if first and supervisor_of(spawned):
            _tell_group(group, signal.SIGTERM)
        for one in new:
            if not (first and one.group == group):
                _tell(one.pid, signal.SIGTERM)
        first = False
    async for members in left(time.monotonic() + LAST_S):
        news(members)
        for one in members:
            _tell(one.pid, signal.SIGKILL)
        if supervisor_of(spawned):
            _tell_group(group, signal.SIGCONT)  # a supervisor that its command had stopped has to go on
    _note(folder, told)
    if supervisor_of(spawned):
        _tell(spawned.pid, signal.SIGKILL)  # then the result is unknown, but the call ends


def supervisor_of(spawned: Spawned) -> living.Living | None:
    """Return the supervisor if it lives, and not another process that has its pid by now."""
    found = living.look(spawned.pid)
    return found if found and found.start_time == spawned.start_time else None


def bears(pid: int, entry: bytes) -> bool:
    """Whether a process was started with an environment in which `entry` begins a line."""
    return b"\0" + entry in b"\0" + living.environment(pid)


def _members(spawned: Spawned, mark: str, *, session: int) -> list[living.Living]:
    """Return what a command started and still lives, without its supervisor and the supervisor's watch.

    A `session` is another's only after all of its members are gone and the pids have come round: not within an end.
    """
    entry = f"{environment.MARK}={mark}\0".encode()
    spared = {spawned.pid if supervisor_of(spawned) else -1, os.getpid()}
    found = [
        one for one in living.everyone() if one.pid not in spared and (one.session == session or bears(one.pid, entry))
    ]
    watch = {one.pid for one in found if living.command_line(one.pid).startswith(SCRIPT)}
    return [one for one in found if one.pid not in watch and one.parent not in watch]


def _tell(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _tell_group(group: int, number: signal.Signals) -> None:
    assert group > 1  # 0 and -1 mean ourselves and everybody
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _note(folder: str, told: dict[tuple[int, int], str]) -> None:
    names = list(told.values())
    for name in names[:NAMED]:
        spool.note(folder, spool.KILLED, name)
    if len(names) > NAMED:
        spool.note(folder, spool.KILLED, f"and {len(names) - NAMED} more")
