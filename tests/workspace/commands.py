"""What tests of commands share: real shells, real processes, and looking at them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pieria.core.ports import Ended
from pieria.workspace import living
from pieria.workspace.processes import Commands

SHELLS = [place for name in ("dash", "bash") if (place := shutil.which(name))] or ["/bin/sh"]
PAIRS = [{"sh": sh, "shell": shell} for sh in SHELLS for shell in SHELLS]
"""The supervisor's shell and the command's: whatever this machine has of both kinds."""
SUPERVISORS = [{"sh": sh} for sh in SHELLS]
"""For tests that take seconds and say nothing about the command's shell."""


def named(pair: dict[str, str]) -> str:
    """Name a parameter after its shells."""
    return "+".join(os.path.basename(place) for place in pair.values())


def commands(root: Path, **given: object) -> Commands:
    base = {"PATH": os.environ["PATH"], "HOME": str(root)}
    return Commands(str(root / "jobs"), session_of(root), **{"base": base, "grace_s": 0.3, **given})  # type: ignore[arg-type]


def session_of(root: Path) -> str:
    """A session's name that no other test has: processes are found by it."""
    return f"{os.getpid()}-{root.name}"


async def ended(
    made: Commands, command: str, *, job: str = "lead.1", cwd: Path | str = "/", timeout_s: float = 30
) -> Ended:
    """Spawn, go, wait."""
    spawned = made.spawn(job, command, cwd=str(cwd), timeout_s=timeout_s)
    made.go(job)
    return await made.wait(spawned)


def until(claim: Callable[[], object], *, limit_s: float = 10) -> None:
    """Wait for what other processes do: there is no event for it."""
    end = time.monotonic() + limit_s
    while not claim():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


def lives(pid: int) -> bool:
    return living.look(pid) is not None


def leftovers(made: Commands) -> list[bytes]:
    """Arguments of what still lives of a session's commands."""
    return [arguments for _, _, arguments in made.leftover()]


def said(pid_file: Path) -> int:
    """The pid that a command wrote."""
    until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    return int(pid_file.read_text())


@contextlib.contextmanager
def killed_after(pid: int) -> Iterator[int]:
    """Let no process of a failed test live on."""
    try:
        yield pid
    finally:
        if lives(pid):
            os.kill(pid, signal.SIGKILL)
