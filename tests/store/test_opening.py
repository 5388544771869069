"""Opening: every cut is survived, what was durable is never cut off, and a log is only what it says it is."""

# ruff: noqa: ASYNC240 - local files and short-lived children, with nothing else on the loop

from __future__ import annotations

import errno
import os
import shutil
import stat
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from pieria.core.errors import LogCorrupt, PieriaError
from pieria.core.events.session import SessionCreated, SessionOpened, Torn
from pieria.core.record import Draft, Record, UnknownData, encode
from pieria.core.values import SESSION
from pieria.store.open import read_log
from tests.store.scenario import (
    FaultyDisk,
    closed,
    created,
    failing,
    let_go,
    lines_of,
    new_log,
    open_all,
    opened,
    prompt,
    resealed,
    write_session,
)


async def test_every_cut_reopens_to_the_last_whole_record_and_goes_on(tmp_path: Path):
    log = new_log(tmp_path)
    log.append([opened(), prompt("a – ü"), prompt("l" * 2100), closed()])
    await log.close()
    path, disk = tmp_path / "s.jsonl", FaultyDisk()
    disk.faults = {"fdatasync": int, "fsync": int}  # three thousand openings need not reach the platter
    whole, lines = path.read_bytes(), lines_of(path)
    ends = [sum(map(len, lines[: count + 1])) for count in range(len(lines))]
    for cut in range(ends[0], len(whole)):
        for old in tmp_path.iterdir():
            old.unlink()
        path.write_bytes(whole[:cut])
        opening, found = open_all(path, disk=disk)
        kept = sum(end <= cut for end in ends)
        assert (len(found), opening.read_only_reason) == (kept, "")
        tail = whole[ends[kept - 1] : cut]
        expected = Torn(len(tail), sha256(tail).hexdigest(), f"{path}.torn-1") if tail else None
        assert opening.torn == expected
        if expected:
            assert Path(expected.copy).read_bytes() == tail
            assert stat.S_IMODE(os.stat(expected.copy).st_mode) == 0o600
        (record,) = opening.log.append([prompt("on")])
        opening.log.drop()
        assert path.read_bytes().startswith(whole[: ends[kept - 1]])
        again, found = open_all(path, disk=disk)
        assert found[-1] == record
        again.log.drop()


async def test_cuts_inside_record_0_are_refused_and_left_alone(tmp_path: Path):
    path = await write_session(tmp_path, turns=1)
    first = lines_of(path)[0]
    for cut in range(len(first)):
        path.write_bytes(first[:cut])
        with pytest.raises(LogCorrupt) as caught:
            open_all(path)
        assert caught.value.hint
        assert (path.read_bytes(), os.listdir(tmp_path)) == (first[:cut], ["s.jsonl"])


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\n", b"\xff\xfe\n\n", b"{}\n", b'{"seq":', b"\0" * 3_000_000])
async def test_rubbish_after_the_last_record_is_a_torn_tail(tmp_path: Path, tail: bytes):
    path = await write_session(tmp_path, turns=1)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    opening, _ = open_all(path)
    assert opening.torn == Torn(len(tail), sha256(tail).hexdigest(), f"{path}.torn-1")
    opening.log.drop()
    assert path.read_bytes() == whole


@pytest.mark.parametrize("end", [b"", b" ", b"\r", b"\t"])
async def test_a_record_without_its_newline_is_torn(tmp_path: Path, end: bytes):
    path = await write_session(tmp_path, turns=1)
    whole, last = path.read_bytes(), lines_of(path)[-1]
    path.write_bytes(whole[:-1] + end)
    opening, _ = open_all(path)
    assert opening.torn.bytes == len(last) - 1 + len(end)
    opening.log.drop()
    assert path.read_bytes() == whole[: -len(last)]


async def test_a_tear_is_reported_until_an_opening_is_recorded(tmp_path: Path):
    path = await write_session(tmp_path, turns=1)
    path.write_bytes(path.read_bytes() + b"torn")
    opening, _ = open_all(path)
    torn = opening.torn
    opening.log.drop()  # dies before it could say so
    opening, _ = open_all(path)
    assert opening.torn == torn
    opening.log.append([Draft(SESSION, SessionOpened(1, 1, "b", "t", torn=opening.torn))])
    opening.log.drop()
    opening, _ = open_all(path)
    assert opening.torn is None
    opening.log.drop()
    path.write_bytes(path.read_bytes() + b"torn again")
    opening, _ = open_all(path)
    assert opening.torn.copy == f"{path}.torn-2"
    opening.log.drop()


@pytest.mark.parametrize("step", ["write", "fsync", "ftruncate", "fdatasync"])
async def test_an_opening_that_was_cut_off_is_done_again_with_one_copy(tmp_path: Path, step: str):
    path = await write_session(tmp_path, turns=1)
    whole = path.read_bytes()
    path.write_bytes(whole + b"torn")
    disk = FaultyDisk()
    disk.faults[step] = failing(errno.EIO)
    opening, _ = open_all(path, disk=disk)
    assert opening.log is None
    let_go(opening)
    opening, _ = open_all(path)
    assert opening.torn == Torn(4, sha256(b"torn").hexdigest(), f"{path}.torn-1")
    opening.log.drop()
    assert sorted(os.listdir(tmp_path)) == ["s.jsonl", "s.jsonl.torn-1"]
    assert path.read_bytes() == whole


async def test_each_opening_is_an_epoch_and_unclean_ends_are_counted(tmp_path: Path):
    log = new_log(tmp_path)
    log.append([opened()])
    await log.close()
    path = tmp_path / "s.jsonl"
    for epoch, ends, last in [(2, 1, closed()), (3, 1, prompt("no goodbye")), (4, 2, closed())]:
        opening, _ = open_all(path)
        assert (opening.log.epoch, opening.unclean_ends) == (epoch, ends)
        (record, _) = opening.log.append([opened(), last])
        assert (record.epoch, record.durable) == (epoch, record.seq - 1)
        await opening.log.close()


async def test_an_opening_without_a_record_changes_nothing(tmp_path: Path):
    path = await write_session(tmp_path)
    before = path.read_bytes()
    for _ in range(3):
        opening, _ = open_all(path)
        await opening.log.close()
        let_go(read_log(str(path), take=repr))
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["s.jsonl"])


def forged(event: object, *, session: str = "s", name: str = "", version: int = 1) -> bytes:
    """One first line with a sound hash, whatever it says."""
    _, line = encode(
        Draft(SESSION, event), seq=0, prev="0" * 32, durable=-1, epoch=1, time="2026-11-30T00:00:00.000000Z", n=0
    )
    line = line.replace(b'"v":1', f'"v":{version}'.encode(), 1)
    return resealed(line.replace(b'"session.created"', f'"{name}"'.encode(), 1) if name else line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (forged(created("s", magic="other")), "no session log"),
        (forged(created("s", format=2)), "format 2"),
        (forged(created("other")), "holds session other"),
        (forged(created("s"), version=9), "doesn't know"),
        (forged(created("s"), name="y.created"), "doesn't know"),
        (forged(opened().event), "doesn't begin"),
        (b"PK\x03\x04" * 2000, "doesn't begin"),
        (b"", "empty"),
        (b"\0" * 5000, "doesn't begin"),
    ],
)
def test_a_file_that_is_no_log_of_this_session_is_refused_untouched(tmp_path: Path, line: bytes, words: str):
    path = tmp_path / "s.jsonl"
    path.write_bytes(line)
    with pytest.raises(LogCorrupt, match=words) as caught:
        open_all(path)
    assert caught.value.hint
    assert (path.read_bytes(), os.listdir(tmp_path)) == (line, ["s.jsonl"])


async def test_a_copied_log_is_refused_under_its_new_name(tmp_path: Path):
    path = await write_session(tmp_path)
    copy = tmp_path / "t.jsonl"
    shutil.copy(path, copy)
    with pytest.raises(LogCorrupt, match="holds session s") as caught:
        open_all(copy)
    assert "s.jsonl" in caught.value.hint
    opening, _ = open_all(path)
    opening.log.drop()


def test_what_can_not_be_opened_is_said_in_words(tmp_path: Path):
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in ("absent", "folder", "pipe", "bad\0name", "n" * 300):
        for attempt in (open_all, lambda path: read_log(str(path), take=repr)):
            with pytest.raises(PieriaError) as caught:
                attempt(tmp_path / f"{name}.jsonl")
            assert caught.value.hint


@pytest.mark.not_as_root
async def test_a_log_that_may_not_be_written_opens_for_reading(tmp_path: Path):
    path = await write_session(tmp_path)
    path.chmod(0o400)
    opening, found = open_all(path)
    assert opening.log is None
    assert "permission denied" in opening.read_only_reason
    assert len(found) == len(lines_of(path))
    let_go(opening)
    path.chmod(0)
    with pytest.raises(PieriaError, match="permission"):
        open_all(path)
    with pytest.raises(PieriaError, match="can't be opened"):
        new_log(Path("/proc/nowhere"))


def insert(path: Path, **changes: object) -> Record:
    """Append a record as another version would have written it."""
    opening, _ = open_all(path)
    (record,) = opening.log.append([prompt("x")])
    opening.log.drop()
    lines = lines_of(path)
    last = msgspec.json.decode(lines[-1]) | changes
    del last["hash"]
    lines[-1] = resealed(msgspec.json.encode(last)[:-1] + b"-" * 44)
    path.write_bytes(b"".join(lines))
    return record


async def test_unknown_records_of_extensions_are_carried_and_skipped(tmp_path: Path):
    path = await write_session(tmp_path)
    insert(path, type="x.coffee", data={"cups": 3})
    opening, found = open_all(path)
    assert isinstance(found[-1].data, UnknownData)
    (record,) = opening.log.append([prompt("on")])
    assert record.prev == found[-1].hash
    opening.log.drop()
    insert(path, data={"to": "lead", "text": "t", "later_field": [1, {"a": None}]})
    opening, found = open_all(path)
    assert (found[-1].data, opening.read_only_reason) == (prompt("t").event, "")
    opening.log.drop()


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "team.grown", "data": {}},
        {"v": 2, "data": {"words": []}},
        {"data": {"to": 5}},
        {"type": "call.examined", "data": {"call": "c", "facts": {"access": "later", "action": "a"}}},
    ],
)
async def test_records_of_a_later_version_open_for_reading_and_are_never_cut(tmp_path: Path, changes: dict):
    path = await write_session(tmp_path)
    insert(path, **changes)
    before = path.read_bytes()
    opening, found = open_all(path)
    assert (opening.log, opening.torn) == (None, None)
    assert "newer version" in opening.read_only_reason
    assert isinstance(found[-1].data, UnknownData)
    let_go(opening)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["s.jsonl"])


async def test_opening_leaves_the_garbage_collector_as_it_was(tmp_path: Path):
    import gc

    path = await write_session(tmp_path)
    seen = []
    from pieria.store.open import open_log

    opening = open_log(str(path), clock=lambda: 0, take=lambda _: seen.append(gc.isenabled()))
    assert (set(seen), gc.isenabled()) == ({False}, True)
    opening.log.drop()


async def test_a_record_0_of_our_own_reads_back(tmp_path: Path):
    path = await write_session(tmp_path)
    opening, found = open_all(path)
    assert found[0].data == opening.header == created("s")
    assert isinstance(opening.header, SessionCreated)
    assert (opening.records, opening.head) == (len(found), found[-1].hash)
    opening.log.drop()
