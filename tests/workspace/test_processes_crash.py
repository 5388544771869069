"""Commands outlive the agent: whoever comes back finds the same result, or learns that nothing ran or nobody knows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pieria.core.ports import Ended, Spawned
from pieria.workspace import living
from tests.workspace.commands import (
    PAIRS,
    SUPERVISORS,
    commands,
    ended,
    killed_after,
    leftovers,
    lives,
    named,
    said,
    session_of,
    until,
)

AGENT = """
import asyncio, json, os, sys
from pieria.workspace.processes import Commands

async def main():
    given = json.loads(sys.argv[1])
    made = Commands(given["root"], given["session"], base={"PATH": os.environ["PATH"]}, **given["how"])
    spawned = made.spawn("lead.1", given["command"], cwd="/", timeout_s=given["timeout_s"])
    if given["step"] != "spawned":
        made.go("lead.1")
    print(json.dumps([spawned.pid, spawned.start_time, spawned.boot_id, spawned.job]), flush=True)
    await asyncio.gather(made.wait(spawned), asyncio.to_thread(sys.stdin.read))

asyncio.run(main())
"""


class Agent:
    """A real process that acts as the agent, to be killed at a step of its own."""

    def __init__(self, root: Path, command: str, *, step: str = "gone", timeout_s: float = 30, **how: object) -> None:
        given = {
            "root": str(root / "jobs"),
            "session": session_of(root),
            "command": command,
            "step": step,
            "timeout_s": timeout_s,
            "how": {"grace_s": 0.3, **how},
        }
        argv = [sys.executable, "-c", AGENT, json.dumps(given)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout
        self.spawned = Spawned(*json.loads(self.process.stdout.readline()))

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


pairs = pytest.mark.parametrize("how", PAIRS, ids=named)
supervisors = pytest.mark.parametrize("how", SUPERVISORS, ids=named)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[str]:
    """A command that marks its start and waits for the test's word."""
    os.mkfifo(tmp_path / "gate")
    yield f"echo begun | tee -a {tmp_path}/begun; read word <{tmp_path}/gate; echo $word; exit 5"
    for pid, _, _ in commands(tmp_path).leftover():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def release(root: Path) -> None:
    (root / "gate").write_text("word\n")


UNDISTURBED = b"begun\nword\n"


def same_but_reattached(outcome: Ended, undisturbed: bytes = UNDISTURBED) -> bool:
    return (outcome.head, outcome.exit_code, outcome.reattached, outcome.unknown) == (undisturbed, 5, True, False)


@pairs
async def test_killed_before_go_nothing_ran(tmp_path: Path, command: str, how: dict[str, str]) -> None:
    agent = Agent(tmp_path, command, step="spawned", **how)
    agent.kill()
    outcome = await commands(tmp_path).wait(agent.spawned)
    assert outcome == Ended(None, never_ran=True, reattached=True)
    assert not (tmp_path / "begun").exists()


@pairs
async def test_killed_while_it_runs_the_end_is_waited_for(tmp_path: Path, command: str, how: dict[str, str]) -> None:
    agent = Agent(tmp_path, command, **how)
    until((tmp_path / "begun").exists)
    agent.kill()
    made = commands(tmp_path)
    waiting = asyncio.ensure_future(made.wait(agent.spawned))
    done, _ = await asyncio.wait((waiting,), timeout=0.15)
    assert not done
    await asyncio.to_thread(release, tmp_path)
    assert same_but_reattached(await waiting)
    assert same_but_reattached(await made.wait(agent.spawned))
    assert same_but_reattached(await commands(tmp_path).wait(agent.spawned))
    assert (tmp_path / "begun").read_text() == "begun\n"


@pairs
async def test_killed_after_the_end_the_result_is_collected(tmp_path: Path, command: str, how: dict[str, str]) -> None:
    agent = Agent(tmp_path, command, **how)
    release(tmp_path)
    until(lambda: not lives(agent.spawned.pid))
    agent.kill()
    assert same_but_reattached(await commands(tmp_path).wait(agent.spawned))
    assert (tmp_path / "begun").read_text() == "begun\n"


@pairs
async def test_killed_with_its_supervisor_nobody_knows(tmp_path: Path, command: str, how: dict[str, str]) -> None:
    agent = Agent(tmp_path, command, **how)
    until((tmp_path / "begun").exists)
    os.kill(agent.spawned.pid, signal.SIGKILL)
    agent.kill()
    made = commands(tmp_path)
    outcome = await made.wait(agent.spawned)
    assert (outcome.head, outcome.exit_code, outcome.unknown) == (b"begun\n", None, True)
    assert (tmp_path / "begun").read_text() == "begun\n"
    until(lambda: not made.leftover(), limit_s=3)  # without a supervisor nobody holds it to its limits


@pytest.mark.parametrize("delay_ms", range(12))
def test_killed_at_any_moment_there_is_one_start_or_none(tmp_path: Path, delay_ms: int) -> None:
    agent = Agent(tmp_path, f"echo begun >>{tmp_path}/begun; echo done; exit 5", step="gone")
    spawned = agent.spawned
    if delay_ms % 2:
        with_supervisor = delay_ms % 4 == 1
        asyncio.run(asyncio.sleep(delay_ms * 0.0003))
        if with_supervisor and lives(spawned.pid):
            os.kill(spawned.pid, signal.SIGKILL)
    agent.kill()
    outcome = asyncio.run(commands(tmp_path).wait(spawned))
    begun = (tmp_path / "begun").read_text() if (tmp_path / "begun").exists() else ""
    assert outcome.unknown or (outcome.never_ran and not begun) or (outcome.exit_code, begun) == (5, "begun\n")
    assert begun in {"", "begun\n"}


# --- limits without us --------------------------------------------------------------------------------------------


def left_alone(root: Path, agent: Agent) -> Ended:
    """Kill the agent, and let the supervisor come to its end without any of us."""
    agent.kill()
    until(lambda: not lives(agent.spawned.pid), limit_s=15)
    return asyncio.run(commands(root).wait(agent.spawned))


@supervisors
@pytest.mark.parametrize("head", ["", "trap '' TERM; "])
def test_the_deadline_holds_without_us(tmp_path: Path, how: dict[str, str], head: str) -> None:
    command = f"{head}echo begun; (while :; do sleep 0.05; done) & echo >{tmp_path}/up; wait; sleep 300; sleep 300"
    agent = Agent(tmp_path, command, timeout_s=1, **how)
    until((tmp_path / "up").exists)
    outcome = left_alone(tmp_path, agent)
    assert outcome.timed_out
    assert outcome.exit_code == (137 if head else 143)
    assert outcome.head == b"begun\n"
    assert len(outcome.killed) >= 2
    until(lambda: not commands(tmp_path).leftover(), limit_s=3)


def test_a_daemon_does_not_escape_the_deadline_without_us(tmp_path: Path) -> None:
    command = f"setsid sh -c 'echo $$ >{tmp_path}/daemon; exec sleep 300' & sleep 300"
    agent = Agent(tmp_path, command, timeout_s=1)
    until((tmp_path / "daemon").exists)
    assert left_alone(tmp_path, agent).timed_out
    until(lambda: not commands(tmp_path).leftover(), limit_s=3)


@supervisors
def test_what_has_lost_the_mark_does_not_escape_either(tmp_path: Path, how: dict[str, str]) -> None:
    command = f"env -i sh -c 'trap \"\" TERM; echo $$ >{tmp_path}/bare; while :; do /bin/sleep 1; done'"
    agent = Agent(tmp_path, command, timeout_s=1, **how)
    with killed_after(said(tmp_path / "bare")) as bare:
        assert left_alone(tmp_path, agent).exit_code in {137, 143}
        until(lambda: not lives(bare), limit_s=3)


@supervisors
def test_the_output_limit_holds_without_us(tmp_path: Path, how: dict[str, str]) -> None:
    os.mkfifo(tmp_path / "gate")
    command = f"echo >{tmp_path}/up; read word <{tmp_path}/gate; yes"
    agent = Agent(tmp_path, command, output_limit_bytes=1_000_000, **how)
    until((tmp_path / "up").exists)
    agent.kill()
    (tmp_path / "gate").write_text("word\n")
    until(lambda: not lives(agent.spawned.pid), limit_s=15)
    outcome = asyncio.run(commands(tmp_path, output_limit_bytes=1_000_000).wait(agent.spawned))
    assert outcome.too_much
    assert outcome.exit_code == 143
    assert outcome.output_bytes == 1_000_000
    assert (tmp_path / "jobs" / "lead.1" / "out").stat().st_size == 1_000_000


@supervisors
def test_the_watch_holds_while_we_are_stopped(tmp_path: Path, how: dict[str, str]) -> None:
    agent = Agent(tmp_path, "sleep 300", timeout_s=2, **how)
    until(lambda: b"sleep\x001\x00" in leftovers(commands(tmp_path)))  # the watch is awake
    agent.process.send_signal(signal.SIGSTOP)
    until(lambda: not lives(agent.spawned.pid), limit_s=15)
    agent.kill()
    assert asyncio.run(commands(tmp_path).wait(agent.spawned)).timed_out


# --- identity -----------------------------------------------------------------------------------------------------


async def test_another_process_with_that_pid_is_left_alone(tmp_path: Path) -> None:
    await ended(commands(tmp_path), "echo x; exit 5")
    stranger = await asyncio.create_subprocess_exec("sleep", "300")
    found = living.look(stranger.pid)
    assert found
    spawned = Spawned(stranger.pid, found.start_time + 1, living.boot_id(), "lead.1")
    made = commands(tmp_path)
    assert same_but_reattached(await made.wait(spawned), b"x\n")
    await made.stop(spawned)
    assert lives(stranger.pid)
    stranger.kill()
    await stranger.wait()


async def test_a_zombie_has_ended(tmp_path: Path) -> None:
    await ended(commands(tmp_path), "echo x; exit 5")
    pid = await asyncio.to_thread(os.posix_spawn, "/bin/sleep", ["sleep", "300"], os.environ)
    found = living.look(pid)
    assert found
    os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid))
    spawned = Spawned(pid, found.start_time, living.boot_id(), "lead.1")
    async with asyncio.timeout(2):
        assert same_but_reattached(await commands(tmp_path).wait(spawned), b"x\n")


async def test_after_a_reboot_nothing_is_said_to_have_never_run(tmp_path: Path) -> None:
    made = commands(tmp_path)
    spawned = made.spawn("lead.1", "true", cwd="/", timeout_s=30)
    other = Spawned(spawned.pid, spawned.start_time, "another boot", "lead.1")
    outcome = await commands(tmp_path).wait(other)
    assert (outcome.unknown, outcome.never_ran) == (True, False)
    made.abandon("lead.1")


async def test_after_a_reboot_a_complete_result_is_collected(tmp_path: Path) -> None:
    await ended(commands(tmp_path), "echo x; exit 5")
    other = Spawned(os.getpid(), 0, "another boot", "lead.1")
    assert same_but_reattached(await commands(tmp_path).wait(other), b"x\n")


@pytest.mark.parametrize("record", ["", "5", "1", "x\n", "\n"])
async def test_a_torn_exit_record_is_none(tmp_path: Path, record: str) -> None:
    made = commands(tmp_path)
    spawned = made.spawn("lead.1", "echo x; exit 5", cwd="/", timeout_s=30)
    made.go("lead.1")
    await made.wait(spawned)
    (tmp_path / "jobs" / "lead.1" / "rc").write_text(record)
    outcome = await commands(tmp_path).wait(spawned)
    assert (outcome.unknown, outcome.exit_code, outcome.head) == (True, None, b"x\n")


async def test_without_its_folder_a_job_is_unknown(tmp_path: Path) -> None:
    made = commands(tmp_path)
    spawned = made.spawn("lead.1", "echo x", cwd="/", timeout_s=30)
    made.go("lead.1")
    await made.wait(spawned)
    made.forget("lead.1")
    outcome = await commands(tmp_path).wait(spawned)
    assert (outcome.unknown, outcome.never_ran) == (True, False)


async def test_a_job_that_never_began_may_be_spawned_again(tmp_path: Path, command: str) -> None:
    agent = Agent(tmp_path, command, step="spawned")
    agent.kill()
    outcome = await ended(commands(tmp_path), "echo again")
    assert (outcome.head, outcome.exit_code) == (b"again\n", 0)


LOW = """
import asyncio, os, sys
from pieria.workspace.processes import Commands
for fd in (0, 1, 2):
    os.close(fd)

made = Commands(sys.argv[1], "low", base={"PATH": os.defpath})
for number in range(7):  # so many more of the low descriptors are taken each time
    spawned = made.spawn(f"j{number}", "echo x; exit 5", cwd="/", timeout_s=30)
    made.go(spawned.job)
    outcome = asyncio.run(made.wait(spawned))
    assert (outcome.exit_code, outcome.head) == (5, b"x\\n"), outcome
    os.open(os.devnull, os.O_RDONLY)
"""


def test_a_process_without_standard_descriptors_can_spawn(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", LOW, str(tmp_path)], check=False).returncode == 0
