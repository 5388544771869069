"""Commands run under their supervisor: gated, bounded, stoppable, and reported byte for byte."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pieria.core.ports import Ended
from pieria.workspace import living
from pieria.workspace.processes import Commands
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

pairs = pytest.mark.parametrize("shells", PAIRS, ids=named)
supervisors = pytest.mark.parametrize("shells", SUPERVISORS, ids=named)


def text_of(outcome: Ended) -> bytes:
    assert outcome.output_bytes == len(outcome.head) + len(outcome.tail)
    return outcome.head + outcome.tail


# --- the ordinary way ---------------------------------------------------------------------------------------------


@pairs
async def test_a_command_reports_its_output_and_exit_code(tmp_path: Path, shells: dict[str, str]) -> None:
    outcome = await ended(commands(tmp_path, **shells), "echo out; echo err >&2; pwd; exit 3", cwd=tmp_path)
    output = f"out\nerr\n{tmp_path}\n".encode()
    assert outcome == Ended(3, head=output, output_bytes=len(output), output_sha256=hashlib.sha256(output).hexdigest())


@pairs
async def test_a_silent_command_ends_well(tmp_path: Path, shells: dict[str, str]) -> None:
    assert await ended(commands(tmp_path, **shells), "") == Ended(0, output_sha256=hashlib.sha256().hexdigest())


@pairs
async def test_nothing_runs_before_go(tmp_path: Path, shells: dict[str, str]) -> None:
    made = commands(tmp_path, **shells)
    spawned = made.spawn("lead.1", f"touch {tmp_path}/ran", cwd="/", timeout_s=30)
    waiting = asyncio.ensure_future(made.wait(spawned))
    done, _ = await asyncio.wait((waiting,), timeout=0.2)
    assert not done
    assert not (tmp_path / "ran").exists()
    made.go("lead.1")
    assert (await waiting).exit_code == 0
    assert (tmp_path / "ran").exists()


@pairs
async def test_an_abandoned_command_never_runs_and_leaves_nothing(tmp_path: Path, shells: dict[str, str]) -> None:
    made = commands(tmp_path, **shells)
    spawned = made.spawn("lead.1", f"touch {tmp_path}/ran", cwd="/", timeout_s=30)
    made.abandon("lead.1")
    until(lambda: not lives(spawned.pid) and not made.leftover())
    assert not (tmp_path / "ran").exists()
    assert list((tmp_path / "jobs").iterdir()) == []


async def test_a_stop_before_go_means_it_never_ran(tmp_path: Path) -> None:
    made = commands(tmp_path)
    spawned = made.spawn("lead.1", f"touch {tmp_path}/ran", cwd="/", timeout_s=30)
    await made.stop(spawned)
    assert (await made.wait(spawned)).never_ran
    assert not (tmp_path / "ran").exists()


@pairs
async def test_the_supervisor_is_no_child_of_ours(tmp_path: Path, shells: dict[str, str]) -> None:
    made = commands(tmp_path, **shells)
    spawned = made.spawn("lead.1", "true", cwd="/", timeout_s=30)
    until(lambda: os.getpgid(spawned.pid) not in living_pids())
    family = living.look(spawned.pid)
    assert family
    assert family.parent != os.getpid()
    assert family.session != os.getsid(0)
    made.go("lead.1")
    assert (await made.wait(spawned)).exit_code == 0


async def test_a_folder_that_is_not_there_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    made = commands(tmp_path)
    with pytest.raises(OSError, match="no such folder"):
        made.spawn("lead.1", "true", cwd=str(tmp_path / "absent"), timeout_s=30)
    assert not (tmp_path / "jobs").exists()


async def test_a_supervisor_that_cannot_start_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    for sh in ("/bin/false", str(tmp_path / "absent")):
        before = descriptors()
        with pytest.raises(OSError, match=r"did not start|No such file"):
            commands(tmp_path, sh=sh).spawn("lead.1", "true", cwd="/", timeout_s=30)
        assert list((tmp_path / "jobs").iterdir()) == []
        assert descriptors() == before


@pytest.mark.parametrize(
    "command",
    [
        "echo 'a  b' \"$HOME\" | cat; false || echo $((1+1))",
        "cat <<END\nline $((40+2))\nEND",
        "# only a comment\n",
        "printf %s 'é日本'; echo \\\n  joined",
        "echo ${c-unset} $# $0 >/dev/null; echo ${c-unset} $#",
        "if",
        "printf '%s' '" + "x" * 200_000 + "'",
        "echo a;\n\n\necho b\n",
        "echo '\udcff\udcfe'",
    ],
)
@pairs
async def test_text_of_a_command_is_taken_as_it_is(tmp_path: Path, shells: dict[str, str], command: str) -> None:
    made = commands(tmp_path, **shells)
    outcome = await ended(made, command)
    script = tmp_path / "script"
    script.write_bytes(command.encode(errors="surrogateescape"))
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    plain = await asyncio.to_thread(
        subprocess.run,
        [shells["shell"], str(script)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=given, check=False,
    )  # fmt: skip
    if command == "if":
        assert outcome.exit_code
    else:
        assert (outcome.exit_code, outcome.output_sha256) == (
            plain.returncode,
            hashlib.sha256(plain.stdout).hexdigest(),
        )


async def test_complaints_of_the_shell_name_no_file_of_ours(tmp_path: Path) -> None:
    outcome = await ended(commands(tmp_path), "no-such-command-here")
    assert outcome.exit_code == 127
    assert text_of(outcome) == b"bash: line 1: no-such-command-here: command not found\n"


async def test_raw_bytes_come_through(tmp_path: Path) -> None:
    source = tmp_path / "raw"
    source.write_bytes(bytes(range(256)) * 400 + b"\xff\xfe\0\x1b[2J")
    outcome = await ended(commands(tmp_path), f"cat {source}")
    data = source.read_bytes()
    assert (outcome.head, outcome.tail) == (data[:16384], data[-16384:])
    assert outcome.output_bytes == len(data)
    assert outcome.output_sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", [16383, 16384, 16385, 32768, 32769, 300_000, 1_500_000])
async def test_head_and_tail_never_overlap(tmp_path: Path, size: int) -> None:
    source = tmp_path / "numbers"
    source.write_bytes(b"".join(b"%d " % number for number in range(size))[:size])
    data = source.read_bytes()
    outcome = await ended(commands(tmp_path), f"cat {source}")
    assert outcome.head == data[:16384]
    assert outcome.tail == data[max(16384, size - 16384) :]
    assert (outcome.output_bytes, outcome.output_sha256) == (size, hashlib.sha256(data).hexdigest())


# --- what a command finds -----------------------------------------------------------------------------------------


async def test_a_command_has_no_terminal_and_nothing_to_read(tmp_path: Path) -> None:
    command = 'read x; echo "read:$?:$x"; (: </dev/tty) 2>/dev/null; echo "tty:$?"; [ -t 1 ]; echo "t:$?"'
    assert text_of(await ended(commands(tmp_path), command)) == b"read:1:\ntty:1\nt:1\n"


async def test_git_asks_nobody_for_words(tmp_path: Path) -> None:
    command = (
        "git init -q . && git config user.name a && git config user.email a@b && git commit --allow-empty; echo $?"
    )
    outcome = await ended(commands(tmp_path), command, cwd=tmp_path, timeout_s=10)
    assert not outcome.timed_out
    assert b"editor" in text_of(outcome)
    assert text_of(outcome).endswith(b"1\n")


async def test_a_password_prompt_fails_at_once(tmp_path: Path) -> None:
    command = "git ls-remote https://user@127.0.0.1:9/x; python3 -c 'open(\"/dev/tty\").read()'; echo $?"
    outcome = await ended(commands(tmp_path), command, timeout_s=10)
    assert not outcome.timed_out
    assert text_of(outcome).endswith(b"1\n")


@pairs
async def test_signals_are_as_for_a_person(tmp_path: Path, shells: dict[str, str]) -> None:
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        command = "grep -E 'Sig(Blk|Ign)' /proc/self/status; kill -INT $$"
        outcome = await ended(commands(tmp_path, **shells), command)
    finally:
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    blocked, ignored = (int(line.split()[1], 16) for line in text_of(outcome).splitlines())
    assert (blocked, ignored & 0x7FFF_FFFF) == (0, 0)  # 32 and 33 are the C library's own
    assert (outcome.exit_code, outcome.signal) == (130, "SIGINT")


@pairs
async def test_a_command_inherits_no_descriptor(tmp_path: Path, shells: dict[str, str]) -> None:
    with (tmp_path / "log").open("wb") as log:
        os.set_inheritable(log.fileno(), True)
        made = commands(tmp_path, **shells)
        outcome = await ended(made, "exec ls /proc/self/fd")
    assert text_of(outcome) == b"0\n1\n2\n3\n"  # 3 is the folder that ls itself reads


@pairs
async def test_the_umask_is_ours_and_spool_files_are_private(tmp_path: Path, shells: dict[str, str]) -> None:
    before = os.umask(0o002)
    try:
        made = commands(tmp_path, **shells)
        assert text_of(await ended(made, "umask")) == b"0002\n"
    finally:
        os.umask(before)
    folder = tmp_path / "jobs" / "lead.1"
    assert {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {
        "lead.1": 0o700,
        "command": 0o600,
        "out": 0o600,
        "pid": 0o600,
        "rc": 0o600,
    }


async def test_keys_are_in_no_environment_that_a_command_can_read(tmp_path: Path) -> None:
    base = {**os.environ, "PROVIDER_KEY": "sk-secret", "PIERIA_API_KEY": "sk-secret", "GH_TOKEN": "sk-secret",
            "HTTPS_PROXY": "http://u:sk-secret@proxy:1", "NODE_PATH": "/n"}  # fmt: skip
    made = commands(tmp_path, base=base)
    outcome = await ended(made, "env; cat /proc/self/environ /proc/$PPID/environ | tr '\\0' '\\n'")
    assert b"sk-secret" not in text_of(outcome)
    assert {
        f"PIERIA_JOB={session_of(tmp_path)}.lead.1".encode(),
        b"TERM=dumb",
        b"GIT_PAGER=cat",
        b"NODE_PATH=/n",
    } <= set(text_of(outcome).split(b"\n"))


async def test_the_words_of_a_command_are_in_no_argument_list(tmp_path: Path) -> None:
    made = commands(tmp_path)
    command = f"echo begun >{tmp_path}/begun; read x <{tmp_path}/gate  # hunter2"
    os.mkfifo(tmp_path / "gate")
    spawned = made.spawn("lead.1", command, cwd="/", timeout_s=30)
    made.go("lead.1")
    until((tmp_path / "begun").exists)
    assert made.leftover()
    assert not [arguments for arguments in leftovers(made) if b"hunter2" in arguments]
    (tmp_path / "gate").write_text("\n")
    assert (await made.wait(spawned)).exit_code == 0


async def test_a_command_may_kill_others_by_its_own_words(tmp_path: Path) -> None:
    outcome = await ended(commands(tmp_path), f"pkill -f nobody-{os.getpid()}-has-this; echo $?")
    assert text_of(outcome) == b"1\n"


# --- children that stay, and ends by force ------------------------------------------------------------------------


@pairs
async def test_a_background_child_neither_delays_the_end_nor_dies(tmp_path: Path, shells: dict[str, str]) -> None:
    made = commands(tmp_path, **shells)
    begun = time.monotonic()
    spawned = made.spawn("lead.1", "echo hi; sleep 300 & (while :; do echo x; sleep 1; done) &", cwd="/", timeout_s=30)
    made.go("lead.1")
    outcome = await made.wait(spawned)
    assert time.monotonic() - begun < 1
    assert outcome.exit_code == 0
    assert outcome.head.startswith(b"hi\n")
    until(lambda: b"sleep\x00300\x00" in leftovers(made))
    await made.stop(spawned)
    assert made.leftover() == ()


@pairs
async def test_the_deadline_ends_the_whole_tree_and_names_it(tmp_path: Path, shells: dict[str, str]) -> None:
    made = commands(tmp_path, **shells)
    command = f"echo partial; for c in 1 2 3; do (while :; do sleep 0.01; done) & done; echo >{tmp_path}/up; wait"
    outcome = await ended(made, command, timeout_s=0.5)
    assert outcome.timed_out
    assert not outcome.stopped
    assert outcome.head == b"partial\n"
    assert outcome.signal == "SIGTERM"
    assert len([name for name in outcome.killed if name.split()[0] in {"bash", "dash", "sh"}]) >= 4
    assert made.leftover() == ()


@supervisors
@pytest.mark.parametrize("form", ["{}", "({}) & wait", "({}) & exec sleep 300"])
async def test_what_ignores_term_is_gone_soon(tmp_path: Path, shells: dict[str, str], form: str) -> None:
    made = commands(tmp_path, **shells)
    stubborn = f"trap '' TERM INT; echo >{tmp_path}/up; while :; do sleep 1; done"
    spawned = made.spawn("lead.1", form.format(stubborn), cwd="/", timeout_s=30)
    made.go("lead.1")
    until((tmp_path / "up").exists)
    begun = time.monotonic()
    await made.stop(spawned)
    outcome = await made.wait(spawned)
    assert time.monotonic() - begun < 2
    assert outcome.stopped
    assert outcome.exit_code in {137, 143}
    assert outcome.signal in {"SIGKILL", "SIGTERM"}
    assert outcome.killed
    assert made.leftover() == ()


@pytest.mark.skipif(not shutil.which("setsid"), reason="needs setsid")
async def test_a_daemon_that_left_the_session_is_stopped_too(tmp_path: Path) -> None:
    made = commands(tmp_path)
    command = f"setsid sh -c 'trap \"\" TERM; echo $$ >{tmp_path}/daemon; while :; do sleep 1; done' & sleep 300"
    spawned = made.spawn("lead.1", command, cwd="/", timeout_s=30)
    made.go("lead.1")
    daemon = said(tmp_path / "daemon")
    waiting = asyncio.ensure_future(made.wait(spawned))
    await asyncio.gather(made.stop(spawned), made.stop(spawned))
    outcome = await waiting
    assert outcome.stopped
    assert f"sh {daemon}" in outcome.killed
    assert not lives(daemon)
    assert made.leftover() == ()


async def test_the_mark_of_one_job_is_not_that_of_another(tmp_path: Path) -> None:
    made = commands(tmp_path)
    spawned = {}
    for job in ("lead.1", "lead.11"):
        command = f"setsid sh -c 'echo $$ >{tmp_path}/{job}; exec sleep 300' &"
        spawned[job] = made.spawn(job, command, cwd="/", timeout_s=30)
        made.go(job)
        await made.wait(spawned[job])
    first, other = said(tmp_path / "lead.1"), said(tmp_path / "lead.11")
    await made.stop(spawned["lead.1"])
    assert not lives(first)
    assert lives(other)
    await made.stop(spawned["lead.11"])
    assert not lives(other)


async def test_what_has_lost_the_mark_is_found_by_its_session(tmp_path: Path) -> None:
    made = commands(tmp_path)
    command = f"env -i sh -c 'trap \"\" TERM; echo $$ >{tmp_path}/bare; while :; do /bin/sleep 1; done'"
    spawned = made.spawn("lead.1", command, cwd="/", timeout_s=30)
    made.go("lead.1")
    with killed_after(said(tmp_path / "bare")) as bare:
        await made.stop(spawned)
        assert not lives(bare)
        assert (await made.wait(spawned)).stopped


async def test_a_command_that_cleans_up_on_term_reports_its_own_code(tmp_path: Path) -> None:
    made = commands(tmp_path)
    command = f"trap 'echo cleaned; exit 7' TERM; echo >{tmp_path}/up; while :; do sleep 0.01; done"
    spawned = made.spawn("lead.1", command, cwd="/", timeout_s=30)
    made.go("lead.1")
    until((tmp_path / "up").exists)
    await made.stop(spawned)
    outcome = await made.wait(spawned)
    assert (outcome.exit_code, outcome.stopped, outcome.signal) == (7, True, "")
    assert b"cleaned\n" in outcome.head


@pytest.mark.parametrize("command", ["kill -STOP 0", "kill -STOP $PPID; sleep 300"])
async def test_a_command_that_stops_its_supervisor_still_ends(tmp_path: Path, command: str) -> None:
    outcome = await ended(commands(tmp_path), command, timeout_s=0.3)
    assert outcome.timed_out
    assert outcome.exit_code is not None


@pairs
async def test_a_command_that_kills_its_supervisor_is_ended_and_unknown(tmp_path: Path, shells: dict[str, str]) -> None:
    made = commands(tmp_path, **shells)
    outcome = await ended(made, "echo before; kill -9 $PPID; sleep 300")
    assert (outcome.unknown, outcome.exit_code, outcome.head) == (True, None, b"before\n")
    until(lambda: not made.leftover(), limit_s=2)


async def test_a_stop_at_any_moment_after_go_leaves_nothing(tmp_path: Path) -> None:
    made = commands(tmp_path)
    for number in range(20):
        spawned = made.spawn(f"lead.{number}", "sleep 300", cwd="/", timeout_s=30)
        made.go(spawned.job)
        await asyncio.sleep(number * 0.0003)
        await made.stop(spawned)
        outcome = await made.wait(spawned)
        assert outcome.stopped or outcome.never_ran
    assert made.leftover() == ()


# --- too much -----------------------------------------------------------------------------------------------------

FLOOD = """
import asyncio, os, resource, sys
from pieria.workspace.processes import Commands

def peak_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def main():
    made = Commands(sys.argv[1], "s1", base={"PATH": os.environ["PATH"]}, grace_s=0.3)
    async def ended(job, command):
        spawned = made.spawn(job, command, cwd="/", timeout_s=30)
        made.go(job)
        return await made.wait(spawned)
    await ended("warm", "seq 100000")
    before = peak_kb()
    outcome = await ended("flood", "yes")
    grown, kept = peak_kb() - before, len(outcome.head + outcome.tail)
    print(grown, outcome.too_much, outcome.exit_code, outcome.output_bytes, kept)

asyncio.run(main())
"""


def test_endless_output_is_ended_cut_and_costs_no_memory(tmp_path: Path) -> None:
    import sys

    done = subprocess.run([sys.executable, "-c", FLOOD, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    grown_kb, *rest = done.stdout.split()
    assert int(grown_kb) < 20_000
    assert rest == ["True", "143", str(64 * 1024 * 1024), "32768"]
    assert (tmp_path / "flood" / "out").stat().st_size == 64 * 1024 * 1024


async def test_much_output_in_an_instant_is_cut_and_said(tmp_path: Path) -> None:
    outcome = await ended(commands(tmp_path, output_limit_bytes=1_000_000), "head -c 3000000 /dev/zero; exit 4")
    assert outcome.too_much
    assert outcome.output_bytes == 1_000_000
    assert outcome.exit_code in {4, 143}


async def test_descriptors_and_processes_do_not_pile_up(tmp_path: Path) -> None:
    made = commands(tmp_path)
    await ended(made, "echo x")
    made.forget("lead.1")
    before = descriptors()
    for number in range(500):
        outcome = await ended(made, "echo x", job=f"lead.{number}")
        assert outcome.head == b"x\n"
        if number % 100 == 0:
            assert descriptors() == before
        made.forget(f"lead.{number}")
    assert descriptors() == before
    assert list((tmp_path / "jobs").iterdir()) == []
    until(lambda: not made.leftover(), limit_s=2)


@supervisors
async def test_a_long_command_leaves_no_watch_behind(tmp_path: Path, shells: dict[str, str]) -> None:
    made = commands(tmp_path, **shells)
    assert (await ended(made, "sleep 1.3")).exit_code == 0
    until(lambda: not made.leftover(), limit_s=2)


def living_pids() -> set[int]:
    return {one.pid for one in living.everyone()}


def descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_a_forgotten_job_that_is_not_there_is_fine(tmp_path: Path) -> None:
    commands(tmp_path).forget("lead.1")


@pytest.mark.parametrize("job", ["", "../x", "a/b", ".hidden"])
def test_a_job_is_no_path(tmp_path: Path, job: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        commands(tmp_path).spawn(job, "true", cwd="/", timeout_s=1)


def test_a_job_that_ran_is_never_run_again(tmp_path: Path) -> None:
    made: Commands = commands(tmp_path)
    asyncio.run(ended(made, "echo first"))
    with pytest.raises(FileExistsError):
        commands(tmp_path).spawn("lead.1", "echo second", cwd="/", timeout_s=1)
    assert (tmp_path / "jobs" / "lead.1" / "out").read_bytes() == b"first\n"
