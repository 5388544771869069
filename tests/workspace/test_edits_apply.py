"""Applying edits: what is kept, what is refused, and whose bytes win."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pieria.core.ports import Files
from pieria.core.values import Change, FileHash, OpId
from pieria.workspace import renaming
from pieria.workspace.disk import Disk
from pieria.workspace.edit_recovery import recover
from pieria.workspace.edits import apply
from pieria.workspace.files import DiskFiles
from pieria.workspace.spots import PREFIX, temp_name
from tests.workspace.edit_cases import (
    DISKS,
    EDIT,
    CountingDisk,
    Killed,
    NoLinksEither,
    NoRenameat2,
    change,
    contents,
    failing,
    sha,
)
from tests.workspace.nobody import as_nobody, open_place

pytestmark = pytest.mark.unprivileged
__all__ = ["open_place"]


def done(*changes: Change, disk: Disk | None = None) -> None:
    outcome = apply(disk or Disk(), EDIT, changes)
    assert (outcome.status, outcome.detail) == ("done", "")
    assert outcome.files == tuple(FileHash(one.path, one.post_sha256) for one in changes)


def refused(status: str, *changes: Change, disk: Disk | None = None) -> str:
    outcome = apply(disk or Disk(), EDIT, changes)
    assert outcome.status == status, outcome
    return outcome.detail


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


# --- what is kept ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o755, 0o600, 0o444, 0o4755, 0o640])
@pytest.mark.parametrize("disk", DISKS)
def test_the_mode_is_kept(tmp_path: Path, bits: int, disk: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(bits)
    done(change(path, b"old", b"new"), disk=DISKS[disk]())
    assert (path.read_bytes(), mode(path)) == (b"new", bits)
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Python sets extended attributes on Linux only")
def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.setxattr(path, "user.origin", b"here")
    done(change(path, b"old", b"new"))
    assert (path.read_bytes(), os.getxattr(path, "user.origin")) == (b"new", b"here")


def test_owner_and_group_are_kept_by_root(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    owner = (1234, 4321) if os.geteuid() == 0 else (os.geteuid(), path.stat().st_gid)
    os.chown(path, *owner)
    done(change(path, b"old", b"new"))
    assert (path.stat().st_uid, path.stat().st_gid) == owner


def test_a_setgid_folder_gives_its_group_to_what_is_made_in_it(tmp_path: Path) -> None:
    group = 4321 if os.geteuid() == 0 else os.getgroups()[0] if os.getgroups() else os.getegid()
    os.chown(tmp_path, -1, group)
    tmp_path.chmod(0o2755)
    done(change(tmp_path / "a", None, b"new"))
    assert (tmp_path / "a").stat().st_gid == group


def test_a_new_file_has_the_mode_that_the_umask_gives_unless_one_is_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        done(change(tmp_path / "a", None, b"x"), change(tmp_path / "b", None, b"x", 0o755))
    finally:
        os.umask(before)
    assert (mode(tmp_path / "a"), mode(tmp_path / "b")) == (0o640, 0o755)


@pytest.mark.parametrize("disk", DISKS)
def test_both_names_of_a_hard_linked_file_get_the_new_bytes(tmp_path: Path, disk: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"old and long")
    os.link(one, two)
    done(change(one, b"old and long", b"new"), disk=DISKS[disk]())
    assert (two.read_bytes(), one.stat().st_nlink) == (b"new", 2)


def test_an_edit_of_a_links_real_path_leaves_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    done(change(tmp_path / "real", b"old", b"new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"new"


def test_a_file_in_a_folder_that_cannot_be_written_is_written_in_place(open_place: Path) -> None:
    path = open_place / "folder" / "a"

    def body() -> None:
        path.parent.mkdir()
        path.write_bytes(b"old")
        path.parent.chmod(0o555)
        number = path.stat().st_ino
        done(change(path, b"old", b"new"))
        assert (path.read_bytes(), path.stat().st_ino) == (b"new", number)
        assert "denied" in refused("none", change(path.parent / "b", None, b"x"))
        path.chmod(0o444)
        assert "read-only" in refused("none", change(path, b"new", b"newer"))
        path.parent.chmod(0o755)

    as_nobody(body)
    assert path.read_bytes() == b"new"


def test_a_file_of_another_user_that_we_may_write_keeps_its_owner(open_place: Path) -> None:
    path = open_place / "a"
    path.write_bytes(b"old")
    path.chmod(0o666)
    owner = path.stat().st_uid
    as_nobody(lambda: done(change(path, b"old", b"new")))
    assert (path.read_bytes(), path.stat().st_uid, mode(path)) == (b"new", owner, 0o666)


def test_a_read_only_file_in_our_own_folder_keeps_its_mode(open_place: Path) -> None:
    path = open_place / "a"

    def body() -> None:
        path.write_bytes(b"old")
        path.chmod(0o444)
        done(change(path, b"old", b"new"))

    as_nobody(body)
    assert (path.read_bytes(), mode(path)) == (b"new", 0o444)


def test_what_only_the_owner_may_do_is_refused_in_words(open_place: Path) -> None:
    path = open_place / "closed" / "a"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(b"old")
    if os.geteuid() == 0:
        as_nobody(lambda: print(refused("conflict", change(path, b"old", b"new"))))
    assert path.read_bytes() == b"old"


# --- conflicts ---------------------------------------------------------------------------------------------------


def test_a_file_that_changed_is_a_conflict_and_nothing_is_touched(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"old")
    two.write_bytes(b"changed meanwhile")
    number = one.stat().st_ino
    said = refused("conflict", change(one, b"old", b"new"), change(two, b"old", b"new"))
    assert str(two) in said
    assert str(one) not in said
    assert (one.stat().st_ino, sorted(os.listdir(tmp_path))) == (number, ["one", "two"])


def test_gone_existing_and_replaced_by_a_folder_are_told_apart(tmp_path: Path) -> None:
    assert "is gone" in refused("conflict", change(tmp_path / "a", b"old", b"new"))
    (tmp_path / "b").write_bytes(b"mine")
    assert "exists already" in refused("conflict", change(tmp_path / "b", None, b"new"))
    (tmp_path / "c").mkdir()
    assert "no longer a file" in refused("conflict", change(tmp_path / "c", b"old", b"new"))
    (tmp_path / "d").symlink_to("nowhere")
    assert "exists already" in refused("conflict", change(tmp_path / "d", None, b"new"))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert "leads elsewhere" in refused("conflict", change(tmp_path / "link" / "a", None, b"new"))


class LastMoment(CountingDisk):
    """Someone writes just before our rename: after all checks."""

    def __init__(self, path: Path, put: bytes | None) -> None:
        super().__init__()
        self.path, self.put, self.struck = path, put, False

    def strike(self) -> None:
        if self.struck:
            return
        self.struck = True
        if self.put is None:
            self.path.unlink(missing_ok=True)
            self.path.mkdir()
        else:
            other = self.path.with_name("other")
            other.write_bytes(self.put)
            other.replace(self.path)

    def exchange(self, first: str, second: str) -> None:
        if second == str(self.path):
            self.strike()
        super().exchange(first, second)

    def move(self, source: str, target: str) -> None:
        if str(self.path) in {source, target}:
            self.strike()
        super().move(source, target)


@pytest.mark.parametrize("put", [b"last moment", None])
@pytest.mark.parametrize("kind", ["write", "create", "delete"])
def test_a_change_in_the_last_moment_wins_and_all_else_is_taken_back(
    tmp_path: Path, kind: str, put: bytes | None
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"old")
    if kind != "create":
        second.write_bytes(b"old")
    pre, post = (None if kind == "create" else b"old"), (None if kind == "delete" else b"new")
    disk = LastMoment(second, put)
    said = refused("conflict", change(first, b"old", b"new"), change(second, pre, post), disk=disk)
    assert "second" in said
    assert first.read_bytes() == b"old"
    assert second.is_dir() if put is None else second.read_bytes() == put
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]


def test_what_someone_wrote_on_top_of_ours_stays_when_the_rest_is_taken_back(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"old")

    class OnTop(CountingDisk):
        def move(self, source: str, target: str) -> None:
            one.write_bytes(b"on top")
            two.write_bytes(b"someone's")
            super().move(source, target)

    said = refused("mixed", change(one, b"old", b"new"), change(two, None, b"new"), disk=OnTop())
    assert str(sha(b"on top")) in said
    assert (one.read_bytes(), two.read_bytes()) == (b"on top", b"someone's")


def test_what_someone_writes_into_the_old_file_after_the_swap_is_kept_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    with path.open("r+b", buffering=0) as held:

        class Late(CountingDisk):
            def move(self, source: str, target: str) -> None:
                held.write(b"late")
                super().move(source, target)

        outcome = apply(Late(), EDIT, [change(path, b"old", b"new"), change(tmp_path / "b", None, b"x")])
    assert outcome.status == "done"
    [kept] = [one for one in tmp_path.iterdir() if one.name.startswith(PREFIX)]
    assert str(kept) in outcome.detail
    assert (path.read_bytes(), kept.read_bytes()) == (b"new", b"late")


class Striking(CountingDisk):
    """Someone writes to a new file just before it is taken back."""

    def __init__(self, path: Path, then: type[BaseException] | None = None) -> None:
        super().__init__()
        self.path, self.killed_by = path, then

    def move(self, source: str, target: str) -> None:
        if source == str(self.path):
            self.path.write_bytes(b"someone's")
        if target.endswith("second"):
            Path(target).write_bytes(b"in the way")
        super().move(source, target)
        if source == str(self.path) and self.killed_by:
            raise self.killed_by


def test_a_new_file_that_someone_wrote_to_is_not_taken_back(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    made = [change(first, None, b"new"), change(second, None, b"new")]
    said = refused("mixed", *made, disk=Striking(first))
    assert str(first) in said
    assert contents(tmp_path) == {"first": (b"someone's", 0o644, 1), "second": (b"in the way", 0o644, 1)}


def test_nor_is_it_lost_if_we_die_just_then(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    made = [change(first, None, b"new"), change(second, None, b"new")]
    with pytest.raises(Killed):
        apply(Striking(first, Killed), EDIT, made)
    assert not first.exists()
    assert recover(Disk(), EDIT, made).status == "conflict"
    assert contents(tmp_path) == {"first": (b"someone's", 0o644, 1), "second": (b"in the way", 0o644, 1)}


def test_folders_made_for_an_edit_that_is_taken_back_go_again(tmp_path: Path) -> None:
    second = tmp_path / "second"
    refused("conflict", change(tmp_path / "a" / "b", None, b"x"), change(second, None, b"x"), disk=Striking(second))
    assert [one.name for one in tmp_path.iterdir()] == ["second"]


# --- refusals and errors -----------------------------------------------------------------------------------------


def test_content_that_is_not_what_was_approved_is_not_written(tmp_path: Path) -> None:
    wrong = Change(path=str(tmp_path / "a"), pre_sha256=None, post_sha256=sha(b"approved"), post="other")
    assert "not what was approved" in refused("none", wrong)
    assert os.listdir(tmp_path) == []


def test_one_path_twice_is_refused(tmp_path: Path) -> None:
    one = change(tmp_path / "a", None, b"x")
    assert "twice" in refused("none", one, one)


def test_folders_made_for_a_failed_edit_go_again(tmp_path: Path) -> None:
    disk = CountingDisk(4, then=failing(errno.ENOSPC))
    assert "No space left" in refused("none", change(tmp_path / "a" / "b" / "c", None, b"x"), disk=disk)
    assert os.listdir(tmp_path) == []


def test_a_file_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    refused("none", change(tmp_path / "a" / "b", None, b"x"))
    assert os.listdir(tmp_path) == ["a"]


LIMITED = """
import resource, sys
from pathlib import Path
from pieria.workspace.disk import Disk
from pieria.workspace.edits import apply
from tests.workspace.edit_cases import EDIT, change
place = Path(sys.argv[1])
made = [change(place / "small", b"old", b"new"), change(place / name, b"old", b"b" * 100_000)]
outcome = apply(Disk(), EDIT, made)
assert (outcome.status, "too large" in outcome.detail) == ("none", True), outcome
"""


@pytest.mark.parametrize("linked", ["big", "big twin"])
def test_the_limit_of_file_sizes_leaves_the_old_files(tmp_path: Path, linked: str) -> None:
    for name in ("small", "big"):
        (tmp_path / name).write_bytes(b"old")
    if "twin" in linked:
        os.link(tmp_path / "big", tmp_path / "twin")
    before = contents(tmp_path)
    subprocess.run(
        [sys.executable, "-c", LIMITED.replace("/ name", "/ 'big'"), str(tmp_path)],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert contents(tmp_path) == before


def test_a_file_that_is_a_mount_of_its_own_is_written_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    number = path.stat().st_ino

    class Pinned(CountingDisk):
        def exchange(self, first: str, second: str) -> None:
            raise OSError(errno.EBUSY, "busy", first)

    done(change(path, b"old", b"new"), disk=Pinned())
    assert (path.stat().st_ino, os.listdir(tmp_path)) == (number, ["a"])


def test_attributes_that_cannot_be_kept_mean_writing_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    number = path.stat().st_ino

    class NoAttributes(CountingDisk):
        def copy_attributes(self, source: int, target: int) -> None:
            raise OSError(errno.ENOTSUP, "not supported")

    done(change(path, b"old", b"new"), disk=NoAttributes())
    assert (path.stat().st_ino, os.listdir(tmp_path)) == (number, ["a"])


def test_another_edits_files_are_not_taken_for_ours(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    one = change(path, b"old", b"new")
    other = tmp_path / temp_name(EDIT, 0, one)
    other.write_bytes(b"new")
    assert "is there already" in refused("none", one)
    assert other.read_bytes() == b"new"


def test_names_beside_a_target_are_plain_short_and_differ() -> None:
    one = Change(path="/x/a", pre_sha256="1", post_sha256="2")
    odd = OpId("../" + "é" * 300 + ":lead.1")
    names = [
        temp_name(EDIT, 0, one),
        temp_name(EDIT, 1, one),
        temp_name(OpId("lead.13"), 0, one),
        temp_name(EDIT, 0, Change(path="/x/a", pre_sha256="1", post_sha256="3")),
        temp_name(odd, 0, one),
    ]
    assert len(set(names)) == 5
    assert names[0].startswith(".pieria-lead.12-0-")
    assert all(name.startswith(PREFIX) and "/" not in name and len(name) < 100 and name.isascii() for name in names)


# --- the calls ---------------------------------------------------------------------------------------------------


def test_new_bytes_are_synced_before_the_first_rename_and_names_after_the_last(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"old")
    two.write_bytes(b"old")
    disk = CountingDisk()
    done(change(one, b"old", b"new"), change(two, b"old", b"new"), change(tmp_path / "c", None, b"x"), disk=disk)
    first = min(disk.log.index("exchange"), disk.log.index("move"))
    assert disk.log[:first].count("fsync") == 3
    assert "exchange" not in disk.log[:first]
    assert disk.log[-2:] == ["sync_folder", "fsync"]


def test_nobody_ever_sees_the_file_missing_or_half(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old" * 1000)
    seen: set[bytes] = set()

    class Watched(CountingDisk):
        def __getattribute__(self, name: str) -> object:
            if name in {"open", "write", "fsync", "exchange", "unlink", "chmod", "sync_folder"}:
                seen.add(path.read_bytes())
            return super().__getattribute__(name)

    done(change(path, b"old" * 1000, b"new" * 2000), disk=Watched())
    assert seen == {b"old" * 1000, b"new" * 2000}


def test_an_exchange_swaps_and_a_move_never_replaces(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "t\udcffwo"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    renaming.exchange(str(one), str(two))
    assert (one.read_bytes(), two.read_bytes()) == (b"2", b"1")
    for disk in (Disk(), NoRenameat2(), NoLinksEither()):
        with pytest.raises(FileExistsError):
            disk.move(str(one), str(two))
    with pytest.raises(FileNotFoundError):
        renaming.exchange(str(one), str(tmp_path / "three"))
    assert (one.read_bytes(), two.read_bytes()) == (b"2", b"1")


def test_the_port_is_kept(tmp_path: Path) -> None:
    port: Files = DiskFiles()
    made = change(tmp_path / "a", None, b"x")
    assert port.apply(EDIT, [made]).status == "done"
    assert port.recover(EDIT, [made]).status == "done"
    assert port.hash(str(tmp_path / "a")) == sha(b"x")
