"""The writer: envelope, chain, all or nothing, and texts that leave their record."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pieria.core.errors import PieriaError
from pieria.core.events.calls import CallExamined, ToolFinished
from pieria.core.events.model import StepFinished
from pieria.core.events.session import BlobStored, Mark
from pieria.core.record import FIRST_PREV, Draft, decode
from pieria.core.values import SESSION, Blob, CallId, Change, Examined, TouchedPath
from pieria.store.chain import LINE_BYTES
from pieria.store.stow import to_bytes
from tests.store.scenario import LEAD, Ticks, closed, lines_of, new_log, open_all, opened, prompt


async def test_records_chain_count_and_keep_time(tmp_path: Path):
    clock = Ticks()
    log = new_log(tmp_path, clock=clock)
    records = log.append([opened(), prompt("one")]) + log.append([prompt("two")])
    clock.now_ns -= 3_600_000_000_000
    records += log.append([prompt("an hour earlier by the clock")])
    await log.close()
    found = [decode(line) for line in lines_of(tmp_path / "s.jsonl")]
    assert found[1:] == list(records)
    assert [record.seq for record in found] == [0, 1, 2, 3, 4]
    assert [record.prev for record in found] == [FIRST_PREV, *(record.hash for record in found[:-1])]
    assert [(record.agent, record.n) for record in found] == [
        ("session", 0), ("session", 1), ("person", 0), ("person", 1), ("person", 2)
    ]  # fmt: skip
    assert [record.time for record in found] == sorted(record.time for record in found)
    assert found[-1].time == found[-2].time
    assert found[0].time == "2026-11-30T19:37:48.001000Z"
    assert {record.epoch for record in found} == {1}


async def test_files_are_for_the_person_alone_whatever_the_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        log = new_log(tmp_path / "a" / "b")
        await log.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b" / "s.jsonl").stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "a" / "b") == ["s.jsonl"]


async def test_a_session_is_never_created_over_another(tmp_path: Path):
    log = new_log(tmp_path)
    await log.close()
    with pytest.raises(PieriaError, match="already"):
        new_log(tmp_path)


async def test_long_texts_are_cited_and_given_back(tmp_path: Path):
    log = new_log(tmp_path)
    own = []
    log.on_own(own.append)
    (short,) = log.append([prompt("x" * 2048)])
    (long,) = log.append([prompt("ü" * 1025)])
    (again,) = log.append([Draft(LEAD, ToolFinished(CallId("c"), "ü" * 1025))])
    assert short.data.text == "x" * 2048
    assert long.data.text == again.data.text == Blob(seq=2, sha256=long.data.text.sha256, len=2050)
    assert [(record.seq, record.agent, type(record.data)) for record in own] == [(2, SESSION, BlobStored)]
    assert log.texts.text(long.data.text) == "ü" * 1025
    await log.close()
    opening, _ = open_all(tmp_path / "s.jsonl")
    (later,) = opening.log.append([prompt("ü" * 1025)])
    assert later.data.text == long.data.text
    assert opening.log.next_seq == later.seq + 1
    opening.log.drop()


async def test_texts_are_found_wherever_they_are_declared(tmp_path: Path):
    log = new_log(tmp_path)
    long = "y" * 3000
    facts = Examined(
        access="edit", action="a", paths=(TouchedPath(long, long, inside=True),), words=(long,), diff=long,
        changes=(Change(long, None, None, pre=long, post="short"),),
    )  # fmt: skip
    (record,) = log.append([Draft(LEAD, CallExamined(CallId("c"), facts))])
    blob = record.data.facts.diff
    assert isinstance(blob, Blob)
    expected = msgspec.structs.replace(facts, diff=blob, changes=(Change(long, None, None, pre=blob, post="short"),))
    assert record.data.facts == expected
    assert decode(encoded(log)[-1]) == record
    log.drop()


def encoded(log) -> list[bytes]:
    """Return the log's lines through its own descriptor: its name may not be there yet."""
    data = os.pread(log.texts.fd, 1 << 26, 0)
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


async def test_a_text_of_fifty_megabytes_on_one_line_is_cut_into_bounded_records(tmp_path: Path):
    log = new_log(tmp_path)
    text = "–" * 16_666_666 + "\0" * 400_000
    (record,) = log.append([Draft(LEAD, ToolFinished(CallId("c"), text))])
    await log.close()
    sizes = [len(line) for line in lines_of(tmp_path / "s.jsonl")]
    assert max(sizes) <= LINE_BYTES
    assert len(sizes) > 300
    seen = []
    opening, found = open_all(tmp_path / "s.jsonl")
    seen = [found[-1].data.text]
    assert seen == [record.data.text]
    assert opening.texts.text(seen[0]) == text
    opening.log.drop()


async def test_many_short_texts_that_would_burst_a_line_are_cited_instead(tmp_path: Path):
    log = new_log(tmp_path)
    change = [Change(f"/p{i}", None, None, pre=f"{i} " + "z" * 1900) for i in range(700)]
    facts = Examined(access="edit", action="a", changes=tuple(change))
    (record,) = log.append([Draft(LEAD, CallExamined(CallId("c"), facts))])
    assert max(len(line) for line in encoded(log)) <= LINE_BYTES
    assert [log.texts.text(each.pre) for each in record.data.facts.changes] == [each.pre for each in change]
    log.drop()


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(st.text(st.characters(codec=None, exclude_categories=()), max_size=60), min_size=1, max_size=4))
def test_any_string_is_recorded_and_read_back_the_same_as_in_memory(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("any")
    log = new_log(folder)
    records = [
        log.append([Draft(LEAD, StepFinished(text=text * times, model=text))])[0] for text in texts for times in (1, 60)
    ]
    live = [log.texts.text(record.data.text) for record in records]
    log.drop()
    opening, found = open_all(folder / "s.jsonl")
    replayed = [record for record in found if isinstance(record.data, StepFinished)]
    assert replayed == records
    assert [opening.texts.text(record.data.text) for record in replayed] == live
    expected = [text * times for text in texts for times in (1, 60)]
    assert [to_bytes(text) for text in live] == [to_bytes(text) for text in expected]
    for text, given_text in zip(live, expected, strict=True):
        if not any("\ud800" <= character <= "\udfff" for character in given_text):
            assert text == given_text
    opening.log.drop()


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=5000))
def test_bytes_that_are_no_utf8_come_back_byte_for_byte(tmp_path_factory, data):
    log = new_log(tmp_path_factory.mktemp("bytes"))
    text = data.decode("utf-8", "surrogateescape")
    (record,) = log.append([prompt(text)])
    assert log.texts.text(record.data.text) == text
    assert log.texts.data(record.data.text) == data
    log.drop()


async def test_numbers_that_json_lacks_never_spoil_a_line(tmp_path: Path):
    log = new_log(tmp_path)
    inf = float("inf")
    (record,) = log.append([Draft(LEAD, StepFinished(text="", logprobs=(-0.5, -inf, float("nan"), inf)))])
    assert record.data.logprobs[0] == -0.5
    assert decode(encoded(log)[-1]) == record
    log.drop()


async def test_half_written_contents_are_not_cited_after_a_restart(tmp_path: Path):
    log = new_log(tmp_path)
    text = "q" * 400_000
    log.append([prompt(text)])
    await log.close()
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines_of(path)[:3]))  # record 0 and two parts of three
    opening, _ = open_all(path)
    (record,) = opening.log.append([prompt(text)])
    assert record.data.text.seq == 3
    assert opening.texts.text(record.data.text) == text
    opening.log.drop()


async def test_marks_and_closes_have_no_data_to_lose(tmp_path: Path):
    log = new_log(tmp_path)
    records = log.append([Draft(SESSION, Mark()), closed()])
    assert [decode(line) for line in encoded(log)[1:]] == list(records)
    log.drop()
