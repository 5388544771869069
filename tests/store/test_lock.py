"""One writer: the second opener learns who the first is, and a dead one never stands in the way."""

# ruff: noqa: ASYNC220, ASYNC222 - local files and short-lived children, with nothing else on the loop

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pieria.core.errors import SessionBusy
from pieria.store.lock import is_held, lock
from pieria.store.open import read_log
from tests.store.scenario import closed, let_go, new_log, open_all, opened, prompt, write_session

HOLDER = """
import os, sys, time
from tests.store.scenario import open_all, opened
opening, _ = open_all(__import__("pathlib").Path(sys.argv[1]))
opening.log.append([opened(os.getpid())])
print("held", flush=True)
sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[bytes]:
    place = Path(__file__).parents[2]
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return holder


async def test_the_second_opener_is_told_who_holds_the_session_and_since_when(tmp_path: Path):
    log = new_log(tmp_path)
    (first,) = log.append([opened(31337)])
    await log.synced(log.append([prompt("z" * 3_000_000)])[0].seq)
    before = os.pread(log.texts.fd, 1 << 26, 0)
    with pytest.raises(SessionBusy) as caught:
        open_all(tmp_path / "s.jsonl")
    assert "process 31337" in str(caught.value)
    assert first.time in str(caught.value)
    assert "pieria log follow s" in caught.value.hint
    view = read_log(log.path, take=repr)
    assert view.records == log.next_seq
    let_go(view)
    assert os.pread(log.texts.fd, 1 << 26, 0) == before
    log.append([closed()])
    await log.close()
    opening, _ = open_all(tmp_path / "s.jsonl")
    opening.log.drop()


async def test_a_killed_holder_never_blocks_the_next(tmp_path: Path):
    path = await write_session(tmp_path)
    with hold(path) as holder:
        with pytest.raises(SessionBusy, match=f"process {holder.pid},"):
            open_all(path)
        holder.kill()
    opening, _ = open_all(path)
    assert opening.unclean_ends == 1
    opening.log.drop()


async def test_the_lock_is_free_at_once_after_each_of_twenty_kills(tmp_path: Path):
    path = await write_session(tmp_path)
    for count in range(20):
        pid = os.fork()
        if pid == 0:  # the child opens it itself: a lock is not inherited here
            opening, _ = open_all(path)
            opening.log.append([opened(os.getpid())])
            os.kill(os.getpid(), 9)
        os.waitpid(pid, 0)
        opening, _ = open_all(path)
        assert opening.unclean_ends == count + 1
        opening.log.drop()


async def test_a_command_that_outlives_the_holder_does_not_keep_the_lock(tmp_path: Path):
    path = await write_session(tmp_path)
    opening, _ = open_all(path)
    with subprocess.Popen(["sleep", "30"], close_fds=False) as child:
        opening.log.drop()
        again, _ = open_all(path)
        again.log.drop()
        child.kill()


async def test_looking_whether_a_session_is_held_tells_and_leaves_it_free(tmp_path: Path):
    path = await write_session(tmp_path)
    fd = os.open(path, os.O_RDONLY)
    assert not is_held(fd)
    opening, _ = open_all(path)
    assert is_held(fd)
    opening.log.drop()
    assert not is_held(fd)
    os.close(fd)


async def test_a_log_replaced_between_opening_and_locking_is_not_written(tmp_path: Path):
    path = await write_session(tmp_path)
    fd = os.open(path, os.O_RDWR)
    fresh = tmp_path / "rescued"
    fresh.write_bytes(path.read_bytes())
    fresh.rename(path)
    with pytest.raises(SessionBusy):
        lock(fd, str(path))
    os.close(fd)


async def test_other_processes_get_in_only_to_be_refused(tmp_path: Path):
    path = await write_session(tmp_path)
    holder = hold(path)
    code = HOLDER.replace("opening, _ = open_all", "print('in', flush=True); opening, _ = open_all")
    others = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)], cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]  # fmt: skip
    for each in others:
        out, err = each.communicate()
        assert (out, each.returncode) == (b"in\n", 1)
        assert b"SessionBusy" in err
    holder.kill()
    holder.communicate()
