"""Trust: bound to folder and content, kept whole under concurrent writers, and never guessed from garbage."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pieria.config.trust import Standing, is_trusted, standing, trust, untrust
from pieria.core.errors import PieriaError


def test_trust_is_for_one_folder_and_one_content(tmp_path: Path) -> None:
    state, one, two = str(tmp_path / "state"), str(tmp_path / "one"), str(tmp_path / "two")
    assert standing(one, b"x", state=state) == Standing()
    trust(one, b"x", state=state)
    assert standing(one, b"x", state=state) == Standing(trusted=True)
    assert standing(one, b"y", state=state) == Standing(changed=True)
    assert standing(two, b"x", state=state) == Standing()
    trust(one, b"y", state=state)
    assert [is_trusted(one, content, state=state) for content in (b"x", b"y")] == [False, True]


def test_the_folder_is_known_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    state = str(tmp_path / "state")
    trust(str(tmp_path / "link"), b"x", state=state)
    assert is_trusted(str(tmp_path / "real"), b"x", state=state)
    (tmp_path / "link").unlink()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other")
    assert not is_trusted(str(tmp_path / "link"), b"x", state=state)


def test_a_folder_whose_name_is_not_utf8_can_be_trusted(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    names = [os.fsdecode(bytes(tmp_path) + b"/caf\xe9"), str(tmp_path / "caf\\xe9")]
    trust(names[0], b"x", state=state)
    assert [is_trusted(name, b"x", state=state) for name in names] == [True, False]


def test_trust_can_be_taken_back(tmp_path: Path) -> None:
    state, folder = str(tmp_path / "state"), str(tmp_path)
    trust(folder, b"x", state=state)
    assert (untrust(folder, state=state), untrust(folder, state=state)) == (True, False)
    assert not is_trusted(folder, b"x", state=state)


def test_the_list_is_for_the_person_alone_even_under_an_open_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        trust(str(tmp_path), b"x", state=str(tmp_path / "state"))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == {"trust.json": 0o600, "trust.lock": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


GARBAGE = [
    b"",
    b"{",
    b"[]",
    b'{"version":1}',
    b'{"version":2,"folders":{}}',
    b"\xff\x00",
    b'{"version":1,"folders":{"a":1}}',
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_trusts_nothing_says_so_and_is_not_overwritten(tmp_path: Path, garbage: bytes) -> None:
    state, path = str(tmp_path), tmp_path / "trust.json"
    path.write_bytes(garbage)
    found = standing("/app", b"x", state=state)
    assert (found.trusted, str(path) in found.problem) == (False, True)
    for change in (lambda: trust("/app", b"x", state=state), lambda: untrust("/app", state=state)):
        with pytest.raises(PieriaError, match="left as it is") as caught:
            change()
        assert caught.value.hint
    assert path.read_bytes() == garbage


def test_a_list_that_is_no_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "trust.json").mkdir()
    assert "it is a folder" in standing("/app", b"x", state=str(tmp_path)).problem
    (tmp_path / "trust.json").rmdir()
    os.mkfifo(tmp_path / "trust.json")
    assert "no regular file" in standing("/app", b"x", state=str(tmp_path)).problem


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PieriaError, match="trust can't be recorded"):
        trust("/app", b"x", state=str(tmp_path / "file/state"))


@pytest.mark.unprivileged
def test_a_list_without_leave_to_read_is_a_clear_error(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        return  # root may read everything; this runs a second time as an ordinary user
    trust("/app", b"x", state=str(tmp_path))
    (tmp_path / "trust.json").chmod(0)
    assert "no permission" in standing("/app", b"x", state=str(tmp_path)).problem


WRITER = """
import sys
from pieria.config.trust import trust, is_trusted
state, name = sys.argv[1:]
sys.stdin.read()
for turn in range(200):
    trust(f"/app/{name}/{turn % 5}", str(turn).encode(), state=state)
    assert is_trusted(f"/app/{name}/{turn % 5}", str(turn).encode(), state=state)
"""


def test_eight_processes_that_change_the_list_200_times_each_lose_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [
        subprocess.Popen([*argv, str(number)], stdin=subprocess.PIPE, stderr=subprocess.PIPE) for number in range(8)
    ]
    problems = []
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
    for writer in writers:
        assert writer.stderr is not None
        problems.append(writer.stderr.read())
        writer.stderr.close()
        writer.wait()
    assert problems == [b""] * 8
    folders = json.loads((tmp_path / "trust.json").read_bytes())["folders"]
    assert set(folders) == {f"/app/{number}/{slot}" for number in range(8) for slot in range(5)}
    assert all(
        is_trusted(f"/app/{n}/{slot}", str(195 + slot).encode(), state=str(tmp_path))
        for n in range(8)
        for slot in range(5)
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trust.json", "trust.lock"]


def test_a_new_file_left_by_a_crash_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "trust.json.new").write_text("half")
    trust("/app", b"x", state=str(tmp_path))
    assert is_trusted("/app", b"x", state=str(tmp_path))
    assert not (tmp_path / "trust.json.new").exists()
