"""The simulated commands of the campaign behave as the real ones under supervisors do: the same cases on both."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pieria.core.ports import Ended, Processes, Spawned
from pieria.workspace.processes import Commands
from tests.crash.kernel import BLOCKS, Kernel, SimulatedCommands
from tests.crash.life import Life

JOB = "lead.7.0"


class Desk:
    """Processes of ours, one after another, on one machine. `reboot` returns what a job's record says after one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Processes] = []

    @property
    def lines(self) -> list[str]:
        path = self.folder / "ran.txt"
        return path.read_text().splitlines() if path.exists() else []

    async def done(self, command: str, *, job: str = JOB) -> tuple[Processes, Spawned, Ended]:
        processes = self.process()
        spawned = processes.spawn(job, command, cwd=str(self.folder), timeout_s=30)
        processes.go(job)
        return processes, spawned, await processes.wait(spawned)

    async def until_it_ran(self) -> None:
        while not self.lines:  # noqa: ASYNC110  (another process writes)
            await asyncio.sleep(0.005)


class RealDesk(Desk):
    def process(self) -> Commands:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        made = Commands(str(self.folder / "jobs"), f"{os.getpid()}-{self.folder.name}", base=environ, grace_s=0.3)
        self.made.append(made)
        return made

    def die(self, processes: Commands) -> None:
        """What the kernel does with a dead process: it closes its descriptors."""
        for held in processes._jobs.values():
            held.close_gate()
            held.close_watch()

    def reboot(self, processes: Commands, spawned: Spawned) -> Spawned:
        self.die(processes)
        return replace(spawned, boot_id="another boot")


class ReadyDesk(RealDesk):
    """Each process has a supervisor that stands by, as after its first command."""

    def process(self) -> Commands:
        made = super().process()
        made._learn()
        made.stand_by()
        assert made._ready is not None
        return made

    def die(self, processes: Commands) -> None:
        super().die(processes)
        processes.close()


class Loose(Life):
    """A life without a log: what a log must cover is looked at elsewhere."""

    def covered(self, key: str, what: str) -> None:
        pass


class SimulatedDesk(Desk):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kernel = Kernel()

    def process(self) -> SimulatedCommands:
        return SimulatedCommands(self.kernel, Loose(asyncio.get_running_loop()))

    def die(self, processes: SimulatedCommands) -> None:
        self.kernel.parent_died()

    def reboot(self, processes: SimulatedCommands, spawned: Spawned) -> Spawned:
        self.kernel.reboot()
        return spawned


@pytest.fixture(params=[RealDesk, ReadyDesk, SimulatedDesk], ids=["real", "standing by", "simulated"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    made = request.param(tmp_path)
    yield made
    for processes in made.made:
        processes.close()
        while processes.leftover():  # noqa: ASYNC110  (a watch sleeps up to a second, and tells nobody of its end)
            await asyncio.sleep(0.05)


async def test_a_command_ends_with_its_code_and_output(desk: Desk) -> None:
    _, _, ended = await desk.done("echo one >>ran.txt; echo two; seq 1 3; exit 3")
    assert (ended.exit_code, ended.head, ended.tail, ended.output_bytes) == (3, b"two\n1\n2\n3\n", b"", 10)
    assert (ended.unknown, ended.stopped, ended.reattached, ended.never_ran) == (False,) * 4
    assert desk.lines == ["one"]


async def test_the_head_and_the_tail_of_a_long_output_are_kept(desk: Desk) -> None:
    _, _, ended = await desk.done("seq 1 20000")
    whole = b"".join(b"%d\n" % i for i in range(1, 20001))
    assert (ended.head, ended.tail, ended.output_bytes) == (whole[:16384], whole[-16384:], len(whole))
    assert len(ended.output_sha256) == 64


async def test_nothing_runs_before_the_word_to_go(desk: Desk) -> None:
    processes = desk.process()
    processes.spawn(JOB, "echo one >>ran.txt", cwd=str(desk.folder), timeout_s=30)
    processes.abandon(JOB)
    _, _, ended = await desk.done("echo two >>ran.txt")
    assert ended.exit_code == 0
    assert desk.lines == ["two"]


async def test_a_process_that_dies_before_the_word_leaves_a_command_that_never_ran(desk: Desk) -> None:
    processes = desk.process()
    spawned = processes.spawn(JOB, "echo one >>ran.txt", cwd=str(desk.folder), timeout_s=30)
    desk.die(processes)
    ended = await desk.process().wait(spawned)
    assert (ended.never_ran, ended.unknown, ended.exit_code, ended.reattached) == (True, False, None, True)
    assert desk.lines == []


async def test_a_process_that_dies_after_the_word_leaves_a_command_that_is_collected(desk: Desk) -> None:
    processes = desk.process()
    spawned = processes.spawn(JOB, "echo one >>ran.txt; echo two; exit 3", cwd=str(desk.folder), timeout_s=30)
    processes.go(JOB)
    desk.die(processes)
    ended = await desk.process().wait(spawned)
    assert (ended.exit_code, ended.head, ended.reattached, ended.unknown) == (3, b"two\n", True, False)
    assert desk.lines == ["one"]


async def test_the_word_of_another_process_has_no_effect(desk: Desk) -> None:
    processes, other = desk.process(), desk.process()
    spawned = processes.spawn(JOB, "echo one >>ran.txt", cwd=str(desk.folder), timeout_s=30)
    other.go(JOB)
    desk.die(processes)
    assert (await other.wait(spawned)).never_ran
    assert desk.lines == []


@pytest.mark.parametrize("told", [True, False])
async def test_after_another_boot_what_has_no_exit_record_is_unknown(desk: Desk, *, told: bool) -> None:
    processes = desk.process()
    spawned = processes.spawn(JOB, f"echo one >>ran.txt; {BLOCKS}", cwd=str(desk.folder), timeout_s=30)
    waiting = None
    if told:
        processes.go(JOB)
        waiting = asyncio.ensure_future(processes.wait(spawned))
        await desk.until_it_ran()
        waiting.cancel()
    after = desk.reboot(processes, spawned)
    ended = await desk.process().wait(after)
    assert (ended.unknown, ended.never_ran, ended.exit_code) == (True, False, None)
    if told:
        await processes.stop(spawned)


async def test_a_stopped_command_says_so_and_how_it_ended(desk: Desk) -> None:
    processes = desk.process()
    spawned = processes.spawn(JOB, f"echo one >>ran.txt; {BLOCKS}", cwd=str(desk.folder), timeout_s=30)
    processes.go(JOB)
    waiting = asyncio.ensure_future(processes.wait(spawned))
    await desk.until_it_ran()
    await processes.stop(spawned)
    ended = await waiting
    assert (ended.stopped, ended.exit_code, ended.signal, ended.unknown) == (True, 143, "SIGTERM", False)


async def test_a_command_that_is_stopped_before_the_word_never_ran(desk: Desk) -> None:
    processes = desk.process()
    spawned = processes.spawn(JOB, "echo one >>ran.txt", cwd=str(desk.folder), timeout_s=30)
    await processes.stop(spawned)
    processes.go(JOB)
    assert (await processes.wait(spawned)).never_ran
    assert desk.lines == []


async def test_waiting_again_tells_the_same_until_the_job_is_forgotten(desk: Desk) -> None:
    processes, spawned, ended = await desk.done("echo two; exit 3")
    assert await processes.wait(spawned) == ended
    processes.forget(JOB)
    assert (await desk.process().wait(spawned)).unknown


async def test_a_name_may_be_used_again_only_if_its_command_never_ran(desk: Desk) -> None:
    processes = desk.process()
    processes.spawn(JOB, "echo one >>ran.txt", cwd=str(desk.folder), timeout_s=30)
    desk.die(processes)
    _, _, ended = await desk.done("echo two >>ran.txt")
    assert ended.exit_code == 0
    with pytest.raises(FileExistsError):
        desk.process().spawn(JOB, "echo three >>ran.txt", cwd=str(desk.folder), timeout_s=30)
    assert desk.lines == ["two"]


@pytest.mark.parametrize("command", ["echo one", "exit 1"])
async def test_a_folder_that_is_gone_is_refused(desk: Desk, command: str) -> None:
    with pytest.raises(FileNotFoundError):
        desk.process().spawn(JOB, command, cwd=str(desk.folder / "gone"), timeout_s=30)


def test_every_command_of_a_plan_means_the_same_to_a_shell(tmp_path: Path) -> None:
    """What the kernel takes for parts, a shell runs one after another."""
    command = "echo one >>ran.txt; echo said one; exit 3"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout, (tmp_path / "ran.txt").read_text()) == (3, b"said one\n", "one\n")


async def test_what_dead_processes_left_is_forgotten_but_for_what_is_kept(desk: Desk) -> None:
    first, kept, ended = await desk.done("echo one >>ran.txt; exit 3", job="lead.1.0")
    _, other, _ = await desk.done("echo two >>ran.txt", job="lead.2.0")
    desk.die(first)
    processes = desk.process()
    mine = processes.spawn("lead.3.0", "echo three >>ran.txt", cwd=str(desk.folder), timeout_s=30)
    processes.forget_others({"lead.1.0"})
    again = await processes.wait(kept)
    assert (again.exit_code, again.unknown) == (ended.exit_code, False)
    assert (await processes.wait(other)).unknown
    processes.go("lead.3.0")
    assert (await processes.wait(mine)).exit_code == 0
    assert desk.lines == ["one", "two", "three"]
