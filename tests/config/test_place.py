"""The place: what git and the instruction files say, read from real repositories without starting git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pieria.config.place import INSTRUCTION_BYTES, Head, head, instructions, repository_root


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def as_git_says(folder: Path) -> Head:
    branch = git(folder, "branch", "--show-current")
    return Head(branch=branch, commit=git(folder, "rev-parse", "HEAD"))


def test_head_is_what_git_says(repository: Path) -> None:
    assert head(str(repository)) == as_git_says(repository)
    git(repository, "checkout", "-q", "-b", "feature/deep/er")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert head(str(repository)) == as_git_says(repository)


def test_packed_refs_are_read(repository: Path) -> None:
    git(repository, "branch", "mai")
    git(repository, "tag", "main")
    git(repository, "pack-refs", "--all", "--prune")
    assert not (repository / ".git/refs/heads/main").exists()
    assert head(str(repository)) == as_git_says(repository)
    git(repository, "commit", "-q", "--allow-empty", "-m", "loose again")
    assert head(str(repository)) == as_git_says(repository)


def test_detached_and_unborn_heads_are_told_apart(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "--detach")
    assert head(str(repository)) == Head(commit=commit)
    git(repository, "checkout", "-q", "--orphan", "fresh")
    assert head(str(repository)) == Head(branch="fresh")


def test_a_linked_worktree_has_its_own_head_and_the_shared_refs(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(repository, "worktree", "add", "-q", "-b", "side", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "in the worktree")
    assert repository_root(str(other)) == str(other)
    assert head(str(other)) == as_git_says(other)
    git(repository, "pack-refs", "--all")
    assert head(str(other)) == as_git_says(other)


def test_the_root_is_found_from_below_and_through_links(repository: Path, tmp_path: Path) -> None:
    deep = repository / "a/b"
    deep.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(deep)
    assert repository_root(str(deep)) == repository_root(str(link)) == str(repository)
    (deep / ".git").mkdir()
    assert repository_root(str(deep)) == str(repository), "an empty .git folder is no repository"
    outside = tmp_path / "outside"
    outside.mkdir()
    assert repository_root(str(outside)) == ""


BROKEN = [
    b"", b"\n", b"ref:", b"ref: \n", b"ref: refs/heads/../../../secret\n", b"ref: /etc/passwd\n",
    b"ref: refs/heads/.invalid\n", b"zz" * 20, b"a" * 39, b"\xff\xfe\x00", b"ref: refs/heads/\x00x",
    b"ref: refs/heads//x\n", b"x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_head_is_an_empty_answer(repository: Path, content: bytes) -> None:
    (repository / ".git/HEAD").write_bytes(content)
    assert head(str(repository)).commit == ""


def test_a_head_that_leads_out_of_git_is_not_followed(repository: Path) -> None:
    (repository.parent / "other").write_text("a" * 40 + "\n")
    (repository / ".git/HEAD").write_text("ref: refs/../../../other\n")
    assert head(str(repository)) == Head()
    (repository / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (repository / ".git/refs/heads/main").write_text("ref: refs/../../../other\n")
    assert head(str(repository)) == Head(branch="main")


def test_refs_that_lead_in_a_circle_end(repository: Path) -> None:
    (repository / ".git/refs/heads/main").write_text("ref: refs/heads/main\n")
    assert head(str(repository)) == Head(branch="main")


def test_a_git_that_is_a_pipe_or_points_nowhere_is_an_empty_answer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert head(str(tmp_path)) == Head()
    (tmp_path / ".git").unlink()
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert head(str(tmp_path)) == Head()
    (tmp_path / ".git").unlink()
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git/HEAD")
    assert head(str(tmp_path)) == Head()


# --- instructions ---------------------------------------------------------------------------------------------


def read(root: Path, cwd: Path) -> list[tuple[str, str]]:
    return [(found.path, found.text) for found in instructions(str(root), str(cwd)).files]


def test_instructions_come_from_the_root_down_and_the_deepest_is_last(tmp_path: Path) -> None:
    deep = tmp_path / "a/b"
    deep.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("root")
    (tmp_path / "CLAUDE.md").write_text("not read beside AGENTS.md")
    (tmp_path / "a/CLAUDE.md").write_text("middle")
    (deep / "AGENTS.md").write_text("deep")
    (tmp_path / "a/b/c").mkdir()
    (tmp_path / "a/b/c/AGENTS.md").write_text("below the working folder")
    assert read(tmp_path, deep) == [
        (f"{tmp_path}/AGENTS.md", "root"),
        (f"{tmp_path}/a/CLAUDE.md", "middle"),
        (f"{deep}/AGENTS.md", "deep"),
    ]


def test_a_folder_outside_the_root_gives_its_own_instructions_alone(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "rooted").mkdir()
    (tmp_path / "root/AGENTS.md").write_text("root")
    (tmp_path / "rooted/AGENTS.md").write_text("other")
    assert read(tmp_path / "root", tmp_path / "rooted") == []
    assert instructions(str(tmp_path / "root"), str(tmp_path / "rooted")).notes != ()


def test_long_instructions_are_cut_at_a_line_and_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("line é\n" * 10_000)
    found = instructions(str(tmp_path), str(tmp_path))
    assert isinstance(found.files[0].text, str)
    assert found.files[0].text.endswith("line é\n\n[The rest of this file was left out: it is too long.]\n")
    assert len(found.files[0].text.encode()) < INSTRUCTION_BYTES + 100
    assert len(found.notes) == 1
    assert "cut after 32768 bytes" in found.notes[0]


def test_instructions_of_exactly_the_limit_are_whole(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"x" * INSTRUCTION_BYTES)
    found = instructions(str(tmp_path), str(tmp_path))
    assert (len(found.files[0].text), found.notes) == (INSTRUCTION_BYTES, ())


def test_text_that_is_not_utf8_is_read_with_replacements(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\xef\xbb\xbfcaf\xe9 ok")
    assert read(tmp_path, tmp_path) == [(f"{tmp_path}/AGENTS.md", "caf\ufffd ok")]


def test_a_link_out_of_the_root_is_left_out_and_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (tmp_path / "private.txt").write_text("secret")
    (root / "AGENTS.md").symlink_to("../private.txt")
    found = instructions(str(root), str(root))
    assert (found.files, found.notes) == ((), (f"{root}/AGENTS.md is left out: it leads out of {root}",))
    (root / "AGENTS.md").unlink()
    (root / "docs/all.md").write_text("inside")
    (root / "AGENTS.md").symlink_to("docs/all.md")
    assert read(root, root) == [(f"{root}/AGENTS.md", "inside")]


def test_what_is_no_file_is_left_out_and_named(tmp_path: Path) -> None:
    for make in (lambda path: path.mkdir(), os.mkfifo, lambda path: path.symlink_to(path)):
        make(tmp_path / "AGENTS.md")
        found = instructions(str(tmp_path), str(tmp_path))
        assert found.files == ()
        assert len(found.notes) == 1
        if (tmp_path / "AGENTS.md").is_dir() and not (tmp_path / "AGENTS.md").is_symlink():
            shutil.rmtree(tmp_path / "AGENTS.md")
        else:
            (tmp_path / "AGENTS.md").unlink()
