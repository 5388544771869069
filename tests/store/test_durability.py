"""Group commit: what is durable when, and how many syncs it takes."""

# ruff: noqa: ASYNC240 - local files and short-lived children, with nothing else on the loop

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from pieria.core.errors import PieriaError
from pieria.core.events.session import Mark
from pieria.core.record import decode
from pieria.store.disk import Disk
from pieria.store.faults import LogFrozen
from tests.store.scenario import FaultyDisk, failing, lines_of, new_log, open_all, prompt

EIO = 5


class Gate(Disk):
    """A disk whose syncs wait to be let through, and say that they began."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Semaphore(0)
        self.began = threading.Semaphore(0)
        self.syncs = 0

    def fdatasync(self, fd):
        self.syncs += 1
        self.began.release()
        self.let.acquire()
        super().fdatasync(fd)


async def test_nothing_is_durable_before_the_sync_that_began_after_it(tmp_path: Path):
    disk = Gate()
    log = new_log(tmp_path, disk=disk)
    disk.began.acquire()
    (early,) = log.append([prompt("while the file gets its name")])
    assert (log.durable, os.path.exists(log.path)) == (-1, False)
    waiter = asyncio.ensure_future(log.synced(early.seq))
    first = asyncio.ensure_future(log.synced(0))
    disk.let.release()
    await first
    assert (log.durable, os.path.exists(log.path)) == (0, True)
    await asyncio.to_thread(disk.began.acquire)
    (late,) = log.append([prompt("during the second sync")])
    disk.let.release()
    await waiter
    assert log.durable == early.seq
    disk.let.release()
    await log.synced(late.seq)
    assert log.durable == late.seq
    log.drop()


async def test_all_who_wait_share_one_sync(tmp_path: Path):
    disk = Gate()
    log = new_log(tmp_path, disk=disk)
    disk.let.release()
    await log.synced(0)
    blocker = asyncio.ensure_future(log.synced(log.append([prompt("first")])[0].seq))
    await asyncio.to_thread(disk.began.acquire)
    await asyncio.to_thread(disk.began.acquire)
    waiters = [log.synced(log.append([prompt(f"agent {i}")])[0].seq) for i in range(16)]
    gathered = asyncio.gather(*waiters)
    await asyncio.sleep(0)
    disk.let.release()
    await blocker
    assert log._barrier.busy  # the next one begins at once, not when the timer is due
    disk.let.release()
    await gathered
    assert disk.syncs == 3
    assert log.durable == log.next_seq - 1
    log.drop()


async def test_two_groups_of_a_turn_take_two_syncs_and_what_nobody_awaits_takes_none(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    disk.calls.clear()
    for _ in range(2):
        log.append([prompt("unasked"), prompt("intent")])
        log.append([prompt("relaxed")])
        assert disk.calls[-3:] == ["write"] * 3
        await log.synced(log.next_seq - 1)
        await log.synced(log.next_seq - 2)
    assert disk.calls.count("fdatasync") == 2
    log.drop()


async def test_a_record_that_nobody_waits_for_is_synced_by_the_timer_once(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    disk.calls.clear()
    (record,) = log.append([prompt("relaxed")])
    loop, begun = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    rose = asyncio.Event()
    log.on_durable(lambda durable: durable >= record.seq and rose.set())
    await rose.wait()
    assert 0.2 < loop.time() - begun < 5
    assert disk.calls == ["write", "fdatasync"]
    log.drop()


async def test_after_an_idle_second_one_mark_carries_the_watermark(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    (record,) = log.append([prompt("last words")])
    await log.synced(record.seq)
    own, marked = [], asyncio.Event()
    log.on_own(lambda mark: (own.append(mark), marked.set()))
    await marked.wait()
    assert (type(own[0].data), own[0].durable) == (Mark, record.seq)
    synced = asyncio.Event()
    log.on_durable(lambda durable: durable == own[0].seq and synced.set())
    await synced.wait()
    await asyncio.sleep(1.2)  # nothing is to happen here: that can only be waited for
    assert len(own) == 1
    log.drop()
    assert [type(decode(line).data) for line in lines_of(tmp_path / "s.jsonl")].count(Mark) == 1


async def test_listeners_hear_each_rise_once(tmp_path: Path):
    log = new_log(tmp_path)
    heard: list[int] = []
    log.on_durable(heard.append)
    for text in ("a", "b", "c"):
        await log.synced(log.append([prompt(text)])[0].seq)
    assert heard[-1] == 3
    assert heard == sorted(set(heard))
    log.drop()


async def test_a_waiter_that_gives_up_leaves_the_others_alone(tmp_path: Path):
    disk = Gate()
    log = new_log(tmp_path, disk=disk)
    (record,) = log.append([prompt("x")])
    leaver, stayer = (asyncio.ensure_future(log.synced(record.seq)) for _ in range(2))
    await asyncio.to_thread(disk.began.acquire)
    leaver.cancel()
    disk.let.release()
    disk.let.release()
    await stayer
    assert leaver.cancelled()
    log.drop()


async def test_a_log_can_be_created_before_there_is_a_loop(tmp_path: Path):
    log, record = await asyncio.to_thread(lambda: (new_log(tmp_path), 0))
    await log.synced(record)
    assert log.durable == 0
    log.drop()


async def test_a_failed_sync_freezes_the_log_and_is_never_repeated(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    disk.faults["fdatasync"] = failing(EIO)
    disk.calls.clear()
    (record,) = log.append([prompt("lost?")])
    results = await asyncio.gather(*(log.synced(record.seq) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in results] == [LogFrozen] * 3
    assert str(tmp_path / "s.jsonl") in str(results[0])
    for attempt in (lambda: log.append([prompt("more")]), lambda: log.append([prompt("more")], outcome=True)):
        with pytest.raises(LogFrozen):
            attempt()
    with pytest.raises(LogFrozen):
        await log.synced(record.seq)
    await log.close()
    assert disk.calls.count("fdatasync") == 1


async def test_rescue_goes_on_in_a_new_file_with_what_memory_still_has(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(log.append([prompt("safe"), prompt("t" * 9000)])[-1].seq)
    disk.faults["fdatasync"] = failing(EIO)
    (lost,) = log.append([prompt("v" * 5000)])
    with pytest.raises(LogFrozen):
        await log.synced(lost.seq)
    path = tmp_path / "s.jsonl"
    before, inode = path.read_bytes(), path.stat().st_ino
    os.truncate(path, len(before) - 700)  # the kernel dropped the dirty page
    disk.faults.clear()
    await log.rescue()
    assert path.read_bytes() == before
    assert path.stat().st_ino != inode
    assert log.durable == lost.seq
    assert log.texts.text(lost.data.text) == "v" * 5000
    (more,) = log.append([prompt("and on")])
    await log.synced(more.seq)
    with pytest.raises(PieriaError, match="in use"):
        open_all(path)
    await log.close()
    opening, found = open_all(path)
    assert [found[-1], opening.torn, sorted(os.listdir(tmp_path))] == [more, None, ["s.jsonl"]]
    opening.log.drop()


async def test_rescue_refuses_when_durable_records_are_gone_or_the_disk_still_fails(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(log.append([prompt("safe")])[0].seq)
    disk.faults["fdatasync"] = failing(EIO)
    with pytest.raises(LogFrozen):
        await log.synced(log.append([prompt("lost")])[0].seq)
    path = tmp_path / "s.jsonl"
    whole = path.read_bytes()
    for name in ("write", "fsync", "rename"):
        disk.faults = {name: failing(EIO)}
        with pytest.raises(PieriaError, match=str(path)):
            await log.rescue()
        assert (path.read_bytes(), os.listdir(tmp_path)) == (whole, ["s.jsonl"])
    disk.faults = {}
    damaged = bytearray(whole)
    damaged[len(lines_of(path)[0]) + 30] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(PieriaError, match="no longer in the log"):
        await log.rescue()
    with pytest.raises(LogFrozen):
        log.append([prompt("never")])
    log.drop()


async def test_a_log_whose_name_can_not_be_given_is_never_durable(tmp_path: Path):
    disk = FaultyDisk()
    disk.faults["rename"] = failing(EIO)
    log = new_log(tmp_path, disk=disk)
    with pytest.raises(LogFrozen):
        await log.synced(0)
    assert log.durable == -1
    log.drop()
