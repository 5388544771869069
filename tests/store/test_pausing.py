"""A disk that refuses: said in words, nothing in memory runs ahead, and the same process goes on later."""

# ruff: noqa: ASYNC240 - local files and short-lived children, with nothing else on the loop

from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from pieria.core.events.calls import ToolFinished
from pieria.core.record import Draft
from pieria.core.values import CallId
from pieria.store.faults import LogPaused
from pieria.store.log import RESERVE_BYTES
from tests.store.scenario import LEAD, FaultyDisk, failing, full_after, let_go, lines_of, new_log, open_all, prompt

GROUP = [prompt("a"), Draft(LEAD, ToolFinished(CallId("c"), "long " * 1000)), prompt("b")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("good", [0, 1, 2, 3])
async def test_a_group_that_fails_in_its_middle_leaves_nothing(tmp_path: Path, number: int, good: int):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(log.append([prompt("before")])[0].seq)
    before = Path(log.path).read_bytes()
    disk.faults["write"] = full_after(good, number)
    for _ in range(2):
        with pytest.raises(LogPaused) as caught:
            log.append(GROUP)
        assert Path(log.path).read_bytes() == before
        assert (log.next_seq, log.durable) == (2, 1)
        disk.faults["write"] = full_after(good, number)
    assert log.path in str(caught.value)
    assert "bytes free" in str(caught.value)
    assert caught.value.hint
    del disk.faults["write"]
    records = log.append(GROUP)
    await log.synced(records[-1].seq)
    await log.close()
    opening, found = open_all(Path(log.path))
    assert [record.seq for record in found] == [0, 1, 2, 3, 4, 5]
    assert opening.torn is None
    assert opening.texts.text(found[4].data.text) == "long " * 1000
    opening.log.drop()


@pytest.mark.parametrize("short", [1, 50, 300])
async def test_a_short_write_is_cut_off_again(tmp_path: Path, short: int):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    before = Path(log.path).read_bytes()
    disk.faults["write"] = full_after(1, short=short)
    with pytest.raises(LogPaused, match="disk is full"):
        log.append(GROUP)
    assert Path(log.path).read_bytes() == before
    log.drop()


async def test_while_the_rest_of_a_failed_append_can_not_be_cut_nothing_is_written_after_it(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    disk.faults = {"write": full_after(0, short=40), "ftruncate": failing(errno.EIO)}
    with pytest.raises(LogPaused):
        log.append([prompt("x")])
    del disk.faults["write"]
    with pytest.raises(LogPaused):
        log.append([prompt("x")])
    disk.faults.clear()
    (record,) = log.append([prompt("x")])
    await log.close()
    opening, found = open_all(Path(log.path))
    assert (found[-1], opening.torn) == (record, None)
    opening.log.drop()


async def test_the_reserve_is_kept_for_outcomes(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    assert log.reserve()
    disk.faults["reserve"] = failing(errno.ENOSPC)
    with pytest.raises(LogPaused, match="disk is full"):
        log.append([prompt("a new intent")])
    (record,) = log.append([Draft(LEAD, ToolFinished(CallId("c"), "x" * 200_000))], outcome=True)
    await log.synced(record.seq)
    del disk.faults["reserve"]
    log.append([prompt("there is space again")])
    log.drop()


async def test_the_reserve_is_taken_again_after_a_cut_gave_it_back(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    assert log.reserve()
    disk.faults["write"] = full_after(0, short=40)
    disk.calls.clear()
    with pytest.raises(LogPaused):
        log.append([prompt("half")])
    assert disk.calls[-2:] == ["ftruncate", "reserve"]
    log.drop()


async def test_a_file_system_without_reserves_does_without(tmp_path: Path):
    disk = FaultyDisk()
    disk.faults["reserve"] = lambda *_: False
    log = new_log(tmp_path, disk=disk)
    assert not log.reserve()
    log.append([prompt("x")])
    log.drop()


async def test_the_reserve_is_given_back_at_the_end(tmp_path: Path):
    log = new_log(tmp_path)
    if not log.reserve():
        return  # not on this file system
    log.append([prompt("x")])
    assert Path(log.path).exists() or os.fstat(log.texts.fd).st_blocks * 512 >= RESERVE_BYTES
    await log.close()
    assert Path(log.path).stat().st_blocks * 512 < RESERVE_BYTES


class Tight(NamedTuple):
    """A folder that soon takes no more, a way to make room there, and whether the limit is a full disk."""

    folder: Path
    make_room: Callable[[], object]
    is_full: bool


@pytest.fixture
def tight(tmp_path: Path) -> Iterator[Tight]:
    """A real file system of 3 MB where this process may mount one; else no file may pass 1 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        filler = place / "filler"
        filler.write_bytes(b"f" * 1_500_000)
        yield Tight(place, filler.unlink, is_full=True)
        subprocess.run(["umount", "-l", str(place)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    yield Tight(place, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)), is_full=False)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_really_full_disk_pauses_parks_and_goes_on(tight: Tight):
    log = new_log(tight.folder)
    log.reserve()
    acknowledged = 0

    async def fill() -> None:
        nonlocal acknowledged
        for number in range(100):
            (record,) = log.append([Draft(LEAD, ToolFinished(CallId("c"), f"{number}" + "\n" * 190_000))])
            await log.synced(record.seq)
            acknowledged = record.seq

    with pytest.raises(LogPaused) as caught:
        await fill()
    assert str(tight.folder) in str(caught.value)
    if tight.is_full:
        (outcome,) = log.append([Draft(LEAD, ToolFinished(CallId("c"), "o" * 100_000))], outcome=True)
        await log.synced(outcome.seq)
        acknowledged = outcome.seq
    tight.make_room()
    (after,) = log.append([Draft(LEAD, ToolFinished(CallId("c"), "after" * 20_000))])
    await log.synced(after.seq)
    await log.close()
    opening, found = open_all(tight.folder / "s.jsonl")
    assert [record.seq for record in found] == list(range(after.seq + 1))
    assert after.seq > acknowledged
    let_go(opening)


async def test_a_full_disk_opens_for_reading_within_the_reason(tmp_path: Path):
    log = new_log(tmp_path)
    await log.synced(log.append([prompt("kept")])[0].seq)
    log.drop()
    path = tmp_path / "s.jsonl"
    with path.open("ab") as file:
        file.write(b'{"seq":2,"pre')
    before = path.read_bytes()
    disk = FaultyDisk()
    disk.faults["write"] = failing(errno.ENOSPC)
    opening, found = open_all(path, disk=disk)
    assert (opening.log, len(found)) == (None, 2)
    assert "disk is full" in opening.read_only_reason
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["s.jsonl"])
    let_go(opening)


async def test_old_bytes_stay_a_prefix_through_pauses(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(log.append([prompt("1")])[0].seq)
    seen = [Path(log.path).read_bytes()]
    for good in range(4):
        disk.faults["write"] = full_after(good, short=10)
        with pytest.raises(LogPaused):
            log.append(GROUP)
        seen.append(Path(log.path).read_bytes())
        disk.faults.clear()
        log.append([prompt("ok")])
        seen.append(Path(log.path).read_bytes())
    assert all(new.startswith(old) for old, new in pairwise(seen))
    assert len(lines_of(Path(log.path))) == log.next_seq
    log.drop()
