"""Verify, show, follow and stats: what a log says about itself, also while it grows."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import msgspec
import pytest

from pieria.core.errors import PieriaError
from pieria.core.events.calls import ToolFinished
from pieria.core.events.model import Request, StepFinished, StepStarted
from pieria.core.events.session import BlobStored
from pieria.core.record import Draft, Record, type_name
from pieria.core.values import Blob, CallId, OpId, Usage
from pieria.store.create import create
from pieria.store.faults import LogFrozen, LogPaused
from pieria.store.show import follow, records
from pieria.store.stats import Tokens, stats
from pieria.store.verify import verify
from tests.store.scenario import (
    LEAD,
    FaultyDisk,
    Scripted,
    Ticks,
    closed,
    created,
    failing,
    let_go,
    new_log,
    open_all,
    opened,
    prompt,
    question,
    with_op,
    write_session,
)

GOLDEN = Path(__file__).parent / "golden-1.jsonl"


async def test_a_sound_log_verifies_with_every_request(tmp_path: Path):
    path = await write_session(tmp_path, turns=3)
    _, found = open_all(path)
    report = verify(str(path))
    assert (report.ok, report.problems, report.gaps) == (True, (), ())
    assert (report.session, report.records, report.head) == ("s", len(found), found[-1].hash)
    assert (report.requests, report.bytes, report.torn_bytes) == (6, path.stat().st_size, 0)
    assert report.types["tool.started"] == 3
    assert sum(report.types.values()) == len(found)


async def test_a_torn_tail_is_no_fault(tmp_path: Path):
    path = await write_session(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"seq":')
    report = verify(str(path))
    assert (report.ok, report.torn_bytes) == (True, 7)


@pytest.mark.parametrize(
    ("drafts", "words"),
    [
        ([with_op(Draft(LEAD, StepFinished("")), "lead.99")], "never opened"),
        ([Draft(LEAD, StepFinished(""))], "belongs to no effect"),
        ([with_op(question(1), "lead.0"), with_op(question(2), "lead.0")], "opens lead.0 again"),
        ([with_op(question(1), "a.1"), with_op(Draft(LEAD, StepFinished("")), "a.1")], "can't close a.1"),
        (
            [with_op(Draft(LEAD, ToolFinished(CallId("c"), "")), "lead.7")] * 2,
            "closes lead.7",
        ),
        ([prompt("x")], ""),
    ],
)
async def test_effects_that_do_not_pair_are_named(tmp_path: Path, drafts: list[Draft], words: str):
    log = new_log(tmp_path)
    log.append(drafts)
    await log.close()
    report = verify(str(tmp_path / "s.jsonl"))
    assert report.ok == (not words)
    assert all(words in problem for problem in report.problems[:1])


async def test_an_effect_closed_twice_is_named(tmp_path: Path):
    log = new_log(tmp_path)
    step = Scripted(log).step("{}")
    for _ in range(2):
        log.append([Draft(LEAD, StepFinished(""), op=step.op)])
    await log.close()
    assert verify(str(tmp_path / "s.jsonl")).problems == (f"record 3 (step.finished) closes {step.op} again",)


def request(record: Record) -> Request:
    assert isinstance(record.data, StepStarted)
    return record.data.request


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"len": 1}, {"add": ("other",)}, {"after": 1}, {"tail": "]"}])
async def test_a_request_whose_bytes_differ_is_named(tmp_path: Path, change: dict):
    log = new_log(tmp_path)
    script = Scripted(log)
    script.step('{"a":1}', "x" * 3000)
    good = request(script.step('{"b":2}'))
    if "tail" in change:
        good = request(Scripted(log).step('{"c":3}'))
    bad = msgspec.structs.replace(good, **change)
    if "after" not in change and "tail" not in change:
        bad = msgspec.structs.replace(bad, after=log.next_seq - 2)
    log.append([Draft(LEAD, StepStarted(bad, attempt=1, purpose="work", model="m"))])
    await log.close()
    (problem,) = verify(str(tmp_path / "s.jsonl")).problems
    assert problem.startswith(f"record {log.next_seq - 1}")


async def test_a_content_that_is_not_what_it_claims_is_named(tmp_path: Path):
    log = new_log(tmp_path)
    part = BlobStored(part=0, parts=1, sha256="0" * 64, len=3, text="abc")
    log.append([Draft("session", part), Draft("session", msgspec.structs.replace(part, part=1, parts=2))])
    log.append([Draft(LEAD, ToolFinished(CallId("c"), Blob(1, "0" * 64, 3)), op=OpId("x"))])
    with pytest.raises(PieriaError, match="Record 1"):
        log.texts.text(Blob(1, "0" * 64, 3))
    for blob in (Blob(0, "0" * 64, 3), Blob(99, "0" * 64, 3), Blob(-1, "0" * 64, 3)):
        with pytest.raises(PieriaError, match="does not hold"):
            log.texts.data(blob)
    await log.close()
    problems = verify(str(tmp_path / "s.jsonl")).problems
    assert ["sha256" in problems[1], "nothing comes before" in problems[2], "cites" in problems[3]] == [True] * 3


async def test_records_are_chosen_by_agent_type_and_place(tmp_path: Path):
    path = await write_session(tmp_path)
    _, found = open_all(path)
    assert list(records(str(path))) == found
    assert list(records(str(path), from_seq=3, to_seq=5)) == found[3:6]
    assert list(records(str(path), agent="person")) == [each for each in found if each.agent == "person"]
    chosen = list(records(str(path), agent="lead", type="step.lost", from_seq=6))
    assert [type_name(each) for each in chosen] == ["step.lost"]
    with pytest.raises(PieriaError):
        list(records(str(tmp_path / "absent.jsonl")))


async def test_a_follower_sees_each_record_once_it_is_whole_and_nothing_half(tmp_path: Path):
    log = new_log(tmp_path)
    await log.synced(0)
    follower = follow(log.path, poll_s=0.001)
    assert (await anext(follower)).seq == 0
    (record,) = log.append([prompt("one")])
    assert await anext(follower) == record
    coming = asyncio.ensure_future(anext(follower))
    (pending,) = log.append([prompt("b" * 5000)])
    assert type_name(await coming) == "blob"
    assert await anext(follower) == pending
    log.drop()


async def test_a_follower_steps_back_when_a_failed_append_is_taken_back(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    follower = follow(log.path, poll_s=0.001)
    await anext(follower)

    def write(fd: int, data: bytes) -> int:
        """Two lines reach the file, and a reader reads them, before the third is refused."""
        if data.startswith(b'{"seq":3'):
            raise OSError(errno.ENOSPC, "full")
        return os.write(fd, data)

    disk.faults["write"] = write
    disk.faults["ftruncate"] = failing(errno.EIO)
    with pytest.raises(LogPaused):
        log.append([prompt("gone 1"), prompt("gone 2"), prompt("refused")])
    seen = [await anext(follower), await anext(follower)]
    disk.faults.clear()
    real = log.append([prompt("real 1, and longer than what was there"), prompt("real 2")])
    seen += [await anext(follower), await anext(follower)]
    assert seen[2:] == list(real)
    assert [record.seq for record in seen] == [1, 2, 1, 2]
    log.drop()


async def test_a_follower_goes_on_in_a_rescued_log_and_ends_at_damage(tmp_path: Path):
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    await log.synced(0)
    follower = follow(log.path, poll_s=0.001)
    await anext(follower)
    disk.faults["fdatasync"] = failing(errno.EIO)
    (first,) = log.append([prompt("1")])
    with pytest.raises(LogFrozen):
        await log.synced(first.seq)
    disk.faults.clear()
    await log.rescue()
    (second,) = log.append([prompt("2")])
    assert [await anext(follower), await anext(follower)] == [first, second]
    await log.close()
    with (tmp_path / "s.jsonl").open("ab") as file:
        file.write(b"damage\n")
    with pytest.raises(StopAsyncIteration):
        await anext(follower)


async def test_stats_count_what_happened_and_leave_the_unknown_unknown(tmp_path: Path):
    path = await write_session(tmp_path, turns=3)
    found = stats(str(path))
    _, whole = open_all(path)
    assert (found.session, found.records, found.bytes) == ("s", len(whole), path.stat().st_size)
    assert (found.agents, found.turns, found.steps, found.attempts) == (["lead"], 3, 3, 6)
    assert (found.attempts_lost, found.attempts_failed, found.tool_calls) == (3, 0, {"bash": 3})
    assert found.tokens == {"lead": Tokens(input=20, output=4, unknown_steps=1)}
    assert (found.first_time, found.last_time) == (whole[0].time, whole[-1].time)
    assert (found.epochs, found.unclean_ends, found.outcome) == (1, 0, "done")


async def test_a_count_that_is_half_known_counts_both_ways(tmp_path: Path):
    log = new_log(tmp_path)
    log.append([opened()])
    log.append([Draft(LEAD, StepFinished("", usage=Usage(input=5)), op=OpId("lead.0"))])
    await log.close()
    found = stats(str(tmp_path / "s.jsonl"))
    assert (found.tokens, found.unclean_ends) == ({"lead": Tokens(input=5, unknown_steps=1)}, 1)


def test_the_golden_log_of_format_1_reads_as_it_was_written(tmp_path: Path):
    path = tmp_path / GOLDEN.name
    path.write_bytes(GOLDEN.read_bytes())
    report = verify(str(path))
    assert (report.ok, report.head) == (True, HEAD)
    opening, found = open_all(path)
    assert (opening.read_only_reason, len(found)) == ("", report.records)
    assert opening.texts.text(found[-3].data.text) == "long " * 900
    opening.log.append([opened()])
    opening.log.drop()
    assert path.read_bytes().startswith(GOLDEN.read_bytes())


HEAD = "e5b383f075c41fee135525116ac5b8d4"


async def test_no_way_of_reading_changes_a_byte(tmp_path: Path):
    path = await write_session(tmp_path)
    before, inode = path.read_bytes(), path.stat().st_ino
    verify(str(path))
    stats(str(path))
    list(records(str(path)))
    opening, _ = open_all(path)
    let_go(opening)
    assert (path.read_bytes(), path.stat().st_ino, os.listdir(tmp_path)) == (before, inode, ["s.jsonl"])


@pytest.mark.parametrize(
    ("change", "words"),
    [({"format": 9}, "record 0 says format 9, this version knows up to 1"), ({"magic": "other"}, "record 0 is not")],
)
async def test_a_log_of_a_later_format_or_another_program_does_not_verify(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    log, _ = create(str(tmp_path), created("s", **change), clock=Ticks())
    log.append([opened(), closed()])
    await log.close()
    report = verify(str(tmp_path / "s.jsonl"))
    assert not report.ok
    assert [problem[: len(words)] for problem in report.problems] == [words]
