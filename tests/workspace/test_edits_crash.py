"""An edit that is killed at any system call ends, after recovery, as if done or as if never begun."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pieria.core.values import Change
from pieria.workspace.disk import Disk
from pieria.workspace.edit_recovery import recover
from pieria.workspace.edits import apply
from tests.workspace.edit_cases import (
    CASES,
    DISKS,
    EDIT,
    CountingDisk,
    Killed,
    change,
    contents,
    failing,
)

Setting = Callable[[Path], list[Change]]


def places(tmp_path: Path) -> Callable[[], Path]:
    """Make one fresh folder after another."""
    count = iter(range(10**6))

    def fresh() -> Path:
        place = tmp_path / str(next(count))
        place.mkdir()
        return place

    return fresh


def undisturbed(place: Path, setting: Setting, disk: CountingDisk) -> tuple[dict, dict]:
    changes = setting(place)
    before = contents(place)
    outcome = apply(disk, EDIT, changes)
    assert (outcome.status, outcome.detail) == ("done", "")
    assert {file.path: file.sha256 for file in outcome.files} == {one.path: one.post_sha256 for one in changes}
    return before, contents(place)


@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("case", CASES)
def test_killed_at_any_call_then_recovered_it_is_all_or_nothing(tmp_path: Path, case: str, disk: str) -> None:
    fresh = places(tmp_path)
    whole = DISKS[disk]()
    before, after = undisturbed(fresh(), CASES[case], whole)
    ends = []
    for stop in range(whole.count):
        place = fresh()
        changes = CASES[case](place)
        with pytest.raises(Killed):
            apply(DISKS[disk](stop), EDIT, changes)
        outcome = recover(DISKS[disk](), EDIT, changes)
        assert contents(place) == (after if outcome.status == "done" else before), (stop, whole.log[stop])
        assert outcome.status in {"done", "none"}
        assert recover(DISKS[disk](), EDIT, changes) == outcome
        ends.append(outcome.status)
    assert ends == sorted(ends, reverse=True), "nothing, up to one call, and everything from then on"
    assert (ends[0], ends[-1]) == ("none", "done")


@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("case", CASES)
def test_killed_inside_recovery_too_it_is_all_or_nothing(tmp_path: Path, case: str, disk: str) -> None:
    fresh = places(tmp_path)
    whole = DISKS[disk]()
    before, after = undisturbed(fresh(), CASES[case], whole)
    for stop in range(whole.count):
        for second in range(200):
            place = fresh()
            changes = CASES[case](place)
            with pytest.raises(Killed):
                apply(DISKS[disk](stop), EDIT, changes)
            try:
                recover(DISKS[disk](second), EDIT, changes)
            except Killed:
                outcome = recover(DISKS[disk](), EDIT, changes)
                assert contents(place) == (after if outcome.status == "done" else before), (stop, second)
                assert outcome.status in {"done", "none"}
            else:
                break


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EFBIG, errno.EROFS])
@pytest.mark.parametrize("case", ["many", "write", "hard link", "create", "delete", "modes"])
def test_an_error_at_any_call_leaves_all_or_nothing(tmp_path: Path, case: str, number: int) -> None:
    fresh = places(tmp_path)
    whole = CountingDisk()
    before, after = undisturbed(fresh(), CASES[case], whole)
    for stop in range(whole.count):
        place = fresh()
        outcome = apply(CountingDisk(stop, then=failing(number)), EDIT, CASES[case](place))
        assert outcome.status in {"done", "none"}, (stop, whole.log[stop], outcome)
        now = {name: had for name, had in contents(place).items() if not name.rpartition("/")[2].startswith(".pieria-")}
        assert now == (after if outcome.status == "done" else before), (stop, whole.log[stop], outcome)
        if outcome.status == "none":
            assert contents(place) == before
            assert "Nothing was changed" in outcome.detail
        elif contents(place) != after:
            assert os.strerror(number) in outcome.detail


def test_an_error_and_then_a_kill_while_taking_back_is_all_or_nothing(tmp_path: Path) -> None:
    fresh = places(tmp_path)
    whole = CountingDisk()
    before, after = undisturbed(fresh(), CASES["many"], whole)
    failed_at = max(index for index, name in enumerate(whole.log) if name in {"exchange", "move", "truncate"})
    for later in range(1, 60):
        place = fresh()
        disk = CountingDisk(failed_at)

        def fail_then_kill(disk: CountingDisk = disk, later: int = later) -> None:
            if disk.stop == failed_at:
                disk.stop, disk.count = failed_at + later, failed_at + 1
                failing(errno.ENOSPC)()
            raise Killed

        disk.then = fail_then_kill
        changes = CASES["many"](place)
        try:
            outcome = apply(disk, EDIT, changes)
        except Killed:
            outcome = recover(Disk(), EDIT, changes)
        assert outcome.status in {"done", "none"}
        assert contents(place) == (after if outcome.status == "done" else before), later


def test_recovery_takes_back_what_is_ours_when_a_file_is_neither(tmp_path: Path) -> None:
    fresh = places(tmp_path)
    whole = CountingDisk()
    before, _ = undisturbed(fresh(), CASES["many"], whole)
    brought_in = [index for index, name in enumerate(whole.log) if name in {"exchange", "move"}]
    for stop in brought_in[1:]:
        place = fresh()
        changes = CASES["many"](place)
        with pytest.raises(Killed):
            apply(CountingDisk(stop), EDIT, changes)
        (place / "sub" / "b.txt").write_bytes(b"the person's own")
        outcome = recover(Disk(), EDIT, changes)
        assert outcome.status == "conflict"
        assert "sub/b.txt" in outcome.detail
        wanted = {**before, "sub/b.txt": (b"the person's own", *before["sub/b.txt"][1:])}
        assert contents(place) == wanted
        assert recover(Disk(), EDIT, changes).status == "conflict"


def test_recovery_reports_what_it_cannot_take_back(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"new one")
    two.write_bytes(b"someone else's")
    changes = [
        change(one, b"old one", b"new one"),
        change(two, b"old two", b"new two"),
    ]
    blind = [Change(path=c.path, pre_sha256=c.pre_sha256, post_sha256=c.post_sha256, post=c.post) for c in changes]
    outcome = recover(Disk(), EDIT, blind)
    assert outcome.status == "mixed"
    for known in changes:
        assert str(known.pre_sha256) in outcome.detail
    assert (one.read_bytes(), two.read_bytes()) == (b"new one", b"someone else's")
    assert recover(Disk(), EDIT, changes).status == "conflict"
    assert (one.read_bytes(), two.read_bytes()) == (b"old one", b"someone else's")


def test_recovery_swaps_back_what_came_out_when_it_was_not_the_file_we_knew(tmp_path: Path) -> None:
    path = tmp_path / "a"

    class Raced(CountingDisk):
        def exchange(self, first: str, second: str) -> None:
            path.write_bytes(b"written in the last moment")
            super().exchange(first, second)
            raise Killed

    path.write_bytes(b"old")
    changes = [change(path, b"old", b"new")]
    with pytest.raises(Killed):
        apply(Raced(), EDIT, changes)
    assert path.read_bytes() == b"new"
    assert recover(Disk(), EDIT, changes).status == "conflict"
    assert contents(tmp_path) == {"a": (b"written in the last moment", 0o644, 1)}


def test_recovery_puts_back_a_file_that_changed_while_it_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "a"

    class Raced(CountingDisk):
        def move(self, source: str, target: str) -> None:
            path.write_bytes(b"written in the last moment")
            super().move(source, target)
            raise Killed

    path.write_bytes(b"old")
    changes = [change(path, b"old", None)]
    with pytest.raises(Killed):
        apply(Raced(), EDIT, changes)
    assert not path.exists()
    assert recover(Disk(), EDIT, changes).status == "conflict"
    assert contents(tmp_path) == {"a": (b"written in the last moment", 0o644, 1)}


def test_half_of_ours_in_a_file_that_we_swap_is_someones_own_choice(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x = 2\ny = 1\n")
    both = [change(path, b"x = 1\ny = 1\n", b"x = 2\ny = 2\n")]
    assert recover(Disk(), EDIT, both).status == "conflict"
    assert path.read_bytes() == b"x = 2\ny = 1\n"
    os.link(path, tmp_path / "twin")
    assert recover(Disk(), EDIT, both).status == "done"
    assert path.read_bytes() == b"x = 2\ny = 2\n"


def test_recovery_syncs_what_was_written_in_place(tmp_path: Path) -> None:
    changes = CASES["hard link"](tmp_path)
    whole = CountingDisk()
    with pytest.raises(Killed):
        apply(CountingDisk(3), EDIT, changes)
    assert recover(whole, EDIT, changes).status == "done"
    assert whole.log[:2] == ["open", "fsync"]
    assert whole.log[-2:] == ["sync_folder", "fsync"]


PROGRAM = """
import os, signal, sys
from pathlib import Path
from pieria.workspace.edits import apply
from tests.workspace.edit_cases import CASES, EDIT, CountingDisk, change
place, stop = Path(sys.argv[1]), int(sys.argv[2])
disk = CountingDisk(stop, then=lambda: os.kill(os.getpid(), signal.SIGKILL))
apply(disk, EDIT, CASES["many"](place))
"""


def test_the_real_signal_at_a_sample_of_calls(tmp_path: Path) -> None:
    fresh = places(tmp_path)
    whole = CountingDisk()
    before, after = undisturbed(fresh(), CASES["many"], whole)
    root = Path(__file__).resolve().parents[2]
    for stop in range(3, whole.count, 6):
        place = fresh()
        argv = [sys.executable, "-c", PROGRAM, str(place), str(stop)]
        done = subprocess.run(argv, cwd=root, check=False)
        assert done.returncode == -signal.SIGKILL
        spare = fresh()
        changes = [
            Change(**{**{name: getattr(one, name) for name in one.__struct_fields__}, "path": path})
            for one in CASES["many"](spare)
            for path in [one.path.replace(str(spare), str(place))]
        ]
        outcome = recover(Disk(), EDIT, changes)
        assert contents(place) == (after if outcome.status == "done" else before), stop


BIG = """
import sys
from pathlib import Path
from pieria.workspace.disk import Disk
from pieria.workspace.edits import apply
from tests.workspace.edit_cases import EDIT, change
path = Path(sys.argv[1])
made = change(path, b"a" * 20_000_000, b"b" * 30_000_000)
print("go", flush=True)
apply(Disk(), EDIT, [made])
"""


@pytest.mark.slow
@pytest.mark.parametrize("linked", [False, True])
def test_a_big_file_killed_at_some_moment_is_old_or_new(tmp_path: Path, linked: bool) -> None:  # noqa: FBT001
    root = Path(__file__).resolve().parents[2]
    old, new = b"a" * 20_000_000, b"b" * 30_000_000
    for index in range(6):
        place = tmp_path / str(index)
        place.mkdir()
        path = place / "big"
        path.write_bytes(old)
        if linked:
            os.link(path, place / "twin")
        argv = [sys.executable, "-c", BIG, str(path)]
        with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            try:
                child.wait(timeout=0.015 * index + 0.02)
            except subprocess.TimeoutExpired:
                child.kill()
        outcome = recover(Disk(), EDIT, [change(path, old, new)])
        assert path.read_bytes() == (new if outcome.status == "done" else old)
        assert sorted(one.name for one in place.iterdir()) == (["big", "twin"] if linked else ["big"])
