"""The list of sessions: a cache that may be wrong, gone or unwritable, and logs that are not."""

# ruff: noqa: ASYNC220, ASYNC221 - local files and short-lived children, with nothing else on the loop

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pieria.core.errors import UsageError
from pieria.store.create import create
from pieria.store.index import HEAD_BYTES, TAIL_BYTES, latest_session, list_sessions
from pieria.store.paths import find_session, log_path, new_session_id, session_folder, sessions_dir
from tests.store.scenario import closed, created, new_log, open_all, opened, prompt, write_session


def rows(folder: Path) -> list[tuple[str, str]]:
    return [(row.id, row.state) for row in list_sessions(str(folder))]


async def test_a_row_says_what_the_log_says(tmp_path: Path):
    path = await write_session(tmp_path)
    (row,) = list_sessions(str(tmp_path))
    assert (row.id, row.path, row.state, row.outcome) == ("s", str(path), "closed", "done")
    assert (row.cwd, row.size) == ("/somewhere", path.stat().st_size)
    assert row.prompt == '{"say":"turn 0 – ü"}'
    _, found = open_all(path)
    assert (row.created, row.last) == (found[0].time, found[-1].time)


async def test_state_is_open_while_held_then_unclean_then_closed(tmp_path: Path):
    log = new_log(tmp_path)
    log.append([opened()])
    await log.synced(1)
    assert rows(tmp_path) == [("s", "open")]
    log.drop()
    assert rows(tmp_path) == [("s", "unclean")]
    assert rows(tmp_path) == [("s", "unclean")]
    opening, _ = open_all(tmp_path / "s.jsonl")
    assert rows(tmp_path) == [("s", "open")]
    opening.log.append([closed()])
    await opening.log.close()
    assert rows(tmp_path) == [("s", "closed")]


async def test_a_long_first_prompt_is_shortened_and_found_in_its_content(tmp_path: Path):
    log = new_log(tmp_path)
    log.append([opened(), prompt("fix\n\n the " + "bug " * 3000)])
    await log.close()
    (row,) = list_sessions(str(tmp_path))
    assert row.prompt == ("fix the " + "bug " * 30)[:80]


@pytest.mark.parametrize("garbage", [None, b"", b"\xff\0garbage", b'{"version":1', b'{"version":9,"rows":[]}', b"[]"])
async def test_an_index_that_is_gone_or_garbage_is_made_again(tmp_path: Path, garbage: bytes | None):
    for name in ("a", "b"):
        log = new_log(tmp_path, name)
        await log.synced(0)
        log.drop()
    expected = list_sessions(str(tmp_path))
    index = tmp_path / "index.json"
    good = index.read_bytes()
    index.unlink()
    if garbage is not None:
        index.write_bytes(garbage)
    assert list_sessions(str(tmp_path)) == expected
    assert index.read_bytes() == good
    assert index.stat().st_mode & 0o777 == 0o600


async def test_a_stale_index_is_corrected_and_a_lost_log_is_told_of_once(tmp_path: Path):
    for name in ("a", "b", "c"):
        await write_session(tmp_path, name)
    list_sessions(str(tmp_path))
    (tmp_path / "b.jsonl").unlink()
    opening, _ = open_all(tmp_path / "c.jsonl")
    opening.log.append([closed("other")])
    await opening.log.close()
    await write_session(tmp_path, "d")
    assert sorted(rows(tmp_path)) == [("a", "closed"), ("b", "missing"), ("c", "closed"), ("d", "closed")]
    assert sorted(rows(tmp_path)) == [("a", "closed"), ("c", "closed"), ("d", "closed")]
    assert {row.id: row.outcome for row in list_sessions(str(tmp_path))}["c"] == "other"


async def test_listing_works_where_nothing_can_be_written(tmp_path: Path):
    await write_session(tmp_path)
    elsewhere = str(tmp_path / "no" / "such" / "index.json")
    assert [row.id for row in list_sessions(str(tmp_path), elsewhere)] == ["s"]
    assert os.listdir(tmp_path) == ["s.jsonl"]
    (tmp_path / "index.json").mkdir()
    assert rows(tmp_path) == [("s", "closed")]
    assert list_sessions(str(tmp_path / "absent")) == ()


async def test_files_that_are_no_logs_are_shown_as_unreadable_or_not_at_all(tmp_path: Path):
    path = await write_session(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "rubbish.jsonl").write_bytes(os.urandom(100_000))
    shutil.copy(path, tmp_path / "copy.jsonl")
    shutil.copy(path, tmp_path / "s.jsonl.torn-1")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "gone.jsonl")
    found = dict(rows(tmp_path))
    assert found.pop("s") == "closed"
    assert found == dict.fromkeys(["empty", "folder", "pipe", "rubbish", "copy"], "unreadable")
    assert dict(rows(tmp_path))["s"] == "closed"


async def test_a_long_log_costs_its_head_and_tail_and_an_unchanged_one_nothing(tmp_path: Path):
    log = new_log(tmp_path)
    log.append([opened(), prompt("first")])
    for number in range(30):
        log.append([prompt(f"{number}" * 100_000)])
    log.append([closed()])
    await log.close()
    code = f"from pieria.store.index import list_sessions; print(list_sessions({str(tmp_path)!r})[0].prompt)"
    counting = f"""
import os
total, real = 0, os.pread
def counted(fd, size, at):
    global total
    data = real(fd, size, at)
    total += len(data)
    return data
os.pread = counted
{code}
print(total)
"""
    for expected in (HEAD_BYTES + TAIL_BYTES, 0):
        out = subprocess.run([sys.executable, "-c", counting], capture_output=True, check=True, text=True).stdout
        assert out.split() == ["first", str(expected)]
    assert HEAD_BYTES + TAIL_BYTES <= 65_536


async def test_eight_processes_list_and_write_the_index_at_once(tmp_path: Path):
    for number in range(12):
        await write_session(tmp_path, f"s{number}", turns=1)
    code = f"""
import os
from pieria.store.index import list_sessions
for turn in range(40):
    os.utime({str(tmp_path)!r} + f"/s{{turn % 12}}.jsonl")
    assert len(list_sessions({str(tmp_path)!r})) == 12
"""
    running = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(8)]
    for each in running:
        _, err = each.communicate()
        assert (each.returncode, err) == (0, b"")
    assert len(json.loads((tmp_path / "index.json").read_bytes())["rows"]) == 12
    assert [name for name in os.listdir(tmp_path) if ".new-" in name] == []


async def test_a_new_session_opens_no_other_log(tmp_path: Path):
    for number in range(3):
        await write_session(tmp_path, f"s{number}", turns=1)
    opened_paths: list[str] = []
    active = [True]

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if active[0] and event in {"open", "os.listdir", "os.scandir"}:
            opened_paths.append(str(arguments[0]))

    sys.addaudithook(listen)  # can't be removed again: it is told to stop listening
    log = new_log(tmp_path, "mine")
    log.append([opened(), prompt("hello")])
    await log.close()
    active[0] = False
    assert [path for path in opened_paths if path.endswith(".jsonl")] == []
    assert [path for path in opened_paths if path == str(tmp_path)] == [str(tmp_path)]  # to sync it


async def test_the_latest_session_of_a_folder_is_found_by_its_real_path(tmp_path: Path):
    place, link, store = tmp_path / "place", tmp_path / "link", tmp_path / "store"
    place.mkdir()
    link.symlink_to(place)
    for name, cwd in [("a", place), ("b", link), ("c", tmp_path)]:
        log, _ = create(str(store), created(name, cwd=str(cwd)), clock=lambda name=name: ord(name) * 10**15)
        await log.close()
    assert latest_session(str(store), str(place)).id == "b"
    assert latest_session(str(store), str(link)).id == "b"
    assert latest_session(str(store), "/nowhere") is None
    place.rmdir()
    assert Path(find_session(str(store), "a")).name == "a.jsonl"


def test_ids_sort_by_time_and_are_found_by_a_unique_beginning(tmp_path: Path):
    first = new_session_id(1_796_067_468_000_000_000, b"\x1f\x3a\x9c\xff")
    later = new_session_id(1_796_067_469_000_000_000, b"\0\0\0")
    assert (first, later) == ("20261130t193748-1f3a9c", "20261130t193749-000000")
    for session in (first, later, "abc", "abcd"):
        Path(log_path(str(tmp_path), session)).touch()
    assert find_session(str(tmp_path), "20261130t193748") == log_path(str(tmp_path), first)
    assert find_session(str(tmp_path), "abc") == log_path(str(tmp_path), "abc")
    for prefix, words in [("2026", "2 sessions"), ("x", "No session"), ("", "empty")]:
        with pytest.raises(UsageError, match=words) as caught:
            find_session(str(tmp_path), prefix)
        assert caught.value.hint


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"HOME": "/h"}, "/h/.local/state/pieria/sessions"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/x"}, "/x/pieria/sessions"),
        ({"HOME": "/h", "XDG_STATE_HOME": "relative"}, "/h/.local/state/pieria/sessions"),
        ({"HOME": "/h", "XDG_STATE_HOME": ""}, "/h/.local/state/pieria/sessions"),
    ],
)
def test_sessions_live_in_the_state_folder(environ: dict[str, str], folder: str):
    assert sessions_dir(environ) == folder
    assert session_folder(log_path(folder, "s")) == f"{folder}/s"


async def test_a_log_that_a_kill_cut_off_at_its_birth_is_removed_by_the_next_list(tmp_path: Path):
    code = f"""
import os, signal
from pieria.store.create import create
from tests.store.scenario import Ticks, created
create({str(tmp_path)!r}, created("dead"), clock=Ticks())
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".dead.new-")
    dead = left.rpartition("-")[2]
    held = tmp_path / f".held.new-{dead}"
    others = [f".alive.new-{os.getpid()}", ".notes.new-", ".notes.new-x", "s.new-1", ".x.new-" + "9" * 60]
    for name in others:
        (tmp_path / name).touch()
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert list_sessions(str(tmp_path)) == ()
        assert set(os.listdir(tmp_path)) >= {held.name, *others}
        assert left not in os.listdir(tmp_path)
    assert list_sessions(str(tmp_path)) == ()
    assert not held.exists()
    assert set(os.listdir(tmp_path)) >= set(others)
