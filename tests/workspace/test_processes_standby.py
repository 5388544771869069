"""The supervisor that stands by: started ahead, given its job later, and never running anything of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pieria.workspace import living
from pieria.workspace.processes import Commands


def commands(tmp_path: Path) -> Commands:
    return Commands(str(tmp_path / "jobs"), "session", base={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})


async def finished(
    port: Commands, job: str, command: str, *, cwd: str, timeout_s: float = 20
) -> tuple[int, bytes, int]:
    spawned = port.spawn(job, command, cwd=cwd, timeout_s=timeout_s)
    port.go(job)
    ended = await port.wait(spawned)
    return ended.exit_code if ended.exit_code is not None else -1, ended.head, spawned.pid


async def test_before_a_first_command_nothing_stands_by(tmp_path: Path) -> None:
    port = commands(tmp_path)
    port.stand_by()
    assert port._ready is None


async def test_a_command_takes_the_supervisor_that_stood_by(tmp_path: Path) -> None:
    port = commands(tmp_path)
    await finished(port, "one", "true", cwd=str(tmp_path))
    port.stand_by()
    assert port._ready is not None
    waiting = port._ready[0].pid
    place = tmp_path / "a place with  blanks "
    place.mkdir()
    code, out, pid = await finished(port, "two", 'pwd; echo "$PIERIA_JOB"; exit 3', cwd=str(place))
    assert (code, out.decode(), pid) == (3, f"{place}\nsession.two\n", waiting)
    assert port._ready is None


async def test_limits_hold_for_a_command_of_one_that_stood_by(tmp_path: Path) -> None:
    port = commands(tmp_path)
    await finished(port, "one", "true", cwd=str(tmp_path))
    port.stand_by()
    spawned = port.spawn("two", "sleep 60", cwd=str(tmp_path), timeout_s=1)
    port.go("two")
    ended = await port.wait(spawned)
    assert ended.timed_out
    assert any("sleep" in name for name in ended.killed)


async def test_one_that_stood_by_runs_nothing_without_go(tmp_path: Path) -> None:
    port = commands(tmp_path)
    await finished(port, "one", "true", cwd=str(tmp_path))
    port.stand_by()
    spawned = port.spawn("two", "touch ran", cwd=str(tmp_path), timeout_s=20)
    port._jobs["two"].close_gate()
    ended = await port.wait(spawned)
    assert ended.never_ran
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("how", ["dead", "newline"])
async def test_a_new_supervisor_is_started_where_the_waiting_one_can_not_serve(tmp_path: Path, how: str) -> None:
    port = commands(tmp_path)
    await finished(port, "one", "true", cwd=str(tmp_path))
    port.stand_by()
    assert port._ready is not None
    waiting, place = port._ready[0].pid, tmp_path
    if how == "dead":
        os.kill(waiting, 9)
        while living.look(waiting) is not None:
            os.sched_yield()
    else:
        place = tmp_path / "two\nlines"
        place.mkdir()
    code, out, pid = await finished(port, "two", "echo hi", cwd=str(place))
    assert (code, out) == (0, b"hi\n")
    assert pid != waiting


async def test_close_lets_the_waiting_one_go(tmp_path: Path) -> None:
    port = commands(tmp_path)
    await finished(port, "one", "true", cwd=str(tmp_path))
    port.stand_by()
    assert port._ready is not None
    waiting = port._ready[0].pid
    port.close()
    while living.look(waiting) is not None:
        os.sched_yield()
    assert port._ready is None
