"""Folders as they come: empty, no repository, huge, with names that are no UTF-8, with broken git."""

from __future__ import annotations

import os

from tests.e2e.desk import Desk, ask, call, say, shell


def test_an_empty_folder_without_git_is_worked_in_and_gets_nothing_of_ours(desk: Desk) -> None:
    desk.answers(
        ask(call("glob", pattern="**"), call("grep", pattern="x"), call("read", path="a.txt"), shell("git status")),
        ask(call("write", path="sub/new.txt", content="hello\n")),
        say("Made it."),
    )
    done = desk.exec("make a file")
    assert (done.code, done.out) == (0, b"Made it.\n")
    assert sorted(path.relative_to(desk.repo).as_posix() for path in desk.repo.rglob("*")) == ["sub", "sub/new.txt"]
    assert "not in a repository" in str(desk.log.data("project.observed")[0]["facts"])
    assert len(desk.log.results()) == 5
    assert desk.pieria("exec", "x", "--continue").code == 1  # found again: the script has no more answers


def test_20000_files_slow_no_start_and_are_searched(desk: Desk) -> None:
    for folder in range(200):
        place = desk.repo / f"folder {folder}"
        place.mkdir()
        for number in range(100):
            os.close(os.open(place / f"file-{number}.py", os.O_CREAT | os.O_WRONLY, 0o644))
    (desk.repo / "folder 7" / "file-7.py").write_text("needle = 1\n")
    desk.answers(
        ask(call("grep", pattern="needle"), call("glob", pattern="**/file-99.py"), call("glob", pattern="folder 7/*")),
        ask(call("edit", path="folder 7/file-7.py", edits=[{"old": "1", "new": "2"}])),
        say("Found."),
    )
    done = desk.exec("find the needle")
    assert (done.code, done.out) == (0, b"Found.\n")
    assert done.wall_s < 10
    results = desk.log.results()
    assert results["lead.1.0"] == "folder 7/file-7.py\n1:needle = 1"
    assert "folder 42/file-99.py" in results["lead.1.1"]
    assert len(results["lead.1.1"]) < 40_000
    assert (desk.repo / "folder 7" / "file-7.py").read_text() == "needle = 2\n"
    assert os.path.getsize(desk.log.path) < 300_000


def test_names_that_are_no_utf8_are_listed_searched_and_lose_nothing(desk: Desk) -> None:  # case 113
    place = os.fsencode(desk.repo)
    os.mkdir(place + b"/caf\xe9")
    for name in (b"/caf\xe9/a.txt", b"/\xff\xfe.txt", "/ü ñ\n\t'\".txt".encode(), b"/-rf"):
        with open(place + name, "wb") as file:
            file.write(b"needle\n")
    desk.git("init", "-q")
    before = sorted(os.listdir(place))
    desk.answers(
        ask(
            call("glob", pattern="**/*.txt"), call("grep", pattern="needle"), call("glob", pattern="*"),
            call("read", path="caf\\xe9/a.txt"), shell("ls; git add -A; git status --short"), call("read", path="-rf"),
        ),
        say("Seen."),
    )  # fmt: skip
    done = desk.exec("look around")
    assert (done.code, done.out) == (0, b"Seen.\n")
    results = desk.log.results()
    assert all("needle" not in text or "a.txt" in text for text in (results["lead.1.0"], results["lead.1.1"]))
    assert results["lead.1.5"] == "1\tneedle"
    assert sorted(os.listdir(place)) == before
    assert desk.pieria("log", "show", desk.log.id).code == 0
    assert desk.pieria("replay", desk.log.id).code == 0


def test_a_working_folder_whose_own_name_is_no_utf8_is_refused_before_anything_happens(desk: Desk) -> None:
    place = os.fsencode(desk.repo) + b"/caf\xe9"
    os.mkdir(place)
    desk.answers(ask(call("write", path="a.txt", content="x")), say("Done."))
    for environ in ({}, {"LANG": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}):
        done = desk.exec("work here", cwd=place, environ=environ)
        assert (done.code, "no UTF-8" in done.err, "hint:" in done.err) == (2, True, True)
    assert desk.logs() == []
    assert os.listdir(os.fsencode(desk.repo)) == [b"caf\xe9"]


def test_a_broken_repository_is_no_reason_to_stop(desk: Desk) -> None:
    desk.answers(ask(shell("git status")), say("Git is broken here."))
    (desk.repo / ".git").mkdir()
    for name, content in (("HEAD", b"\xff\xff"), ("HEAD", b"ref: refs/heads/\n"), ("packed-refs", b"\0" * 100)):
        (desk.repo / ".git" / name).write_bytes(content)
        assert desk.exec("look").out == b"Git is broken here.\n"
    (desk.repo / ".git" / "HEAD").unlink()
    (desk.repo / ".git" / "packed-refs").unlink()
    (desk.repo / ".git").rmdir()
    (desk.repo / ".git").write_text("gitdir: /nowhere\n")
    assert desk.exec("look").out == b"Git is broken here.\n"


def test_a_folder_that_vanishes_is_an_error_in_words(desk: Desk) -> None:
    gone = desk.base / "gone"
    gone.mkdir()
    desk.answers(say("Done."))
    done = desk.pieria("exec", "x", cwd=gone, before=("bash", "-c", 'rmdir "$PWD"; exec "$@"', "bash"))
    assert (done.code, "folder is gone" in done.err, "hint:" in done.err) == (2, True, True)


def test_instructions_reach_the_model_and_count_as_data(desk: Desk) -> None:
    desk.commit({"AGENTS.md": "Always say please.\n", "sub/AGENTS.md": "In sub say thanks.\n", "sub/a.txt": "hi\n"})
    desk.answers(say("Please, thanks."))
    assert desk.exec("hi", cwd=desk.repo / "sub").code == 0
    system = desk.log.messages()[0]["content"]
    assert system.index("Always say please.") < system.index("In sub say thanks.")
    assert desk.git("status", "--short") == ""


def test_nothing_of_the_program_stays_in_the_persons_folder(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    head = desk.git("rev-parse", "HEAD")
    desk.answers(ask(call("edit", path="a.txt", edits=[{"old": "hi", "new": "ho"}]), shell("true")), say("Done."))
    desk.exec("work")
    assert sorted(os.listdir(desk.repo)) == [".git", "a.txt"]
    assert desk.git("status", "--short") == " M a.txt\n"
    assert (desk.git("rev-parse", "HEAD"), desk.git("stash", "list")) == (head, "")
