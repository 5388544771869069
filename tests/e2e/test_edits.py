"""Edits through the whole program: only the bytes that were meant change, or nothing does and the model is told why."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from tests.e2e.desk import UNPRIVILEGED, Desk, Json, ask, call, say, shell


def edit(path: str, old: str, new: str, **more: Any) -> Json:
    return call("edit", path=path, edits=[{"old": old, "new": new, **more}])


def edited(desk: Desk, files: Mapping[str, bytes | str], *calls: Json) -> list[str]:
    """Let a model make these calls in a repository of these files; return what it was told."""
    desk.commit(files)
    desk.answers(ask(*calls), say("Done."))
    assert desk.pieria("exec", "edit").code == 0
    results = desk.log.results()
    return [results[f"lead.1.{number}"] for number in range(len(calls))]


def test_line_endings_marks_and_encodings_stay_and_only_the_meant_lines_change(desk: Desk) -> None:
    """Cases 093, 095, 096, 104."""
    crlf = b"".join(b"line %d\r\n" % number for number in range(1, 101))
    files = {
        "crlf.txt": crlf,
        "mixed.txt": b"a\r\nb\nc\r\n",
        "latin.py": b"x = 1\n# caf\xe9\n",
        "sjis.txt": "x = 1\n日本\n".encode("shift_jis"),
        "bom.txt": b"\xef\xbb\xbffirst\nsecond\n",
        "utf16.txt": "first\r\nsecond\r\n".encode("utf-16"),
        "tail.txt": b"no newline at the end",
        "Makefile": b"all:\n\tcc  -o x\n\ttrue\n",
    }
    told = edited(
        desk,
        files,
        edit("crlf.txt", "line 50\n", "line fifty\nand more\n"),
        edit("mixed.txt", "b", "B"),
        edit("latin.py", "x = 1", "x = 2"),
        edit("sjis.txt", "x = 1", "x = 2"),
        edit("bom.txt", "first\n", "FIRST\n"),
        edit("utf16.txt", "second", "2nd"),
        edit("tail.txt", "end", "END"),
        edit("Makefile", "\tcc  -o x", "\tcc -O2 -o x"),
    )
    now = {name: (desk.repo / name).read_bytes() for name in files}
    assert now == {
        "crlf.txt": crlf.replace(b"line 50\r\n", b"line fifty\r\nand more\r\n"),
        "mixed.txt": b"a\r\nB\nc\r\n",
        "latin.py": b"x = 2\n# caf\xe9\n",
        "sjis.txt": "x = 2\n日本\n".encode("shift_jis"),
        "bom.txt": b"\xef\xbb\xbfFIRST\nsecond\n",
        "utf16.txt": "first\r\n2nd\r\n".encode("utf-16"),
        "tail.txt": b"no newline at the END",
        "Makefile": b"all:\n\tcc -O2 -o x\n\ttrue\n",
    }, told
    assert "2\t1\tcrlf.txt" in desk.git("diff", "--numstat")


def test_modes_links_and_hard_links_stay(desk: Desk) -> None:  # cases 097, 098
    desk.commit({"run.sh": "echo hi\n", "real.txt": "hi\n", "hard.txt": "hi\n", "private.txt": "hi\n"})
    (desk.repo / "run.sh").chmod(0o755)
    (desk.repo / "private.txt").chmod(0o600)
    (desk.repo / "link.txt").symlink_to("real.txt")
    (desk.repo / "twin.txt").hardlink_to(desk.repo / "hard.txt")
    outside = desk.base / "outside.txt"
    outside.write_text("hi\n")
    (desk.repo / "out.txt").symlink_to(outside)
    names = ("run.sh", "link.txt", "hard.txt", "private.txt")
    desk.answers(ask(*[edit(name, "hi", "ho") for name in (*names, "out.txt")]), say("Done."))
    assert desk.pieria("exec", "edit").code == 3  # what leads out of the folder is asked about
    modes = [stat.S_IMODE((desk.repo / name).stat().st_mode) for name in ("run.sh", "private.txt")]
    assert modes == [0o755, 0o600]
    assert (desk.repo / "link.txt").is_symlink()
    assert [(desk.repo / name).read_text().strip()[-2:] for name in ("run.sh", "real.txt", "twin.txt")] == ["ho"] * 3
    assert (desk.repo / "hard.txt").samefile(desk.repo / "twin.txt")
    assert outside.read_text() == "hi\n"
    asked = desk.log.of("approval.requested")[0]["op"]
    assert desk.pieria("resume", "--last", "--approve", asked).code == 0
    assert (outside.read_text(), (desk.repo / "out.txt").is_symlink()) == ("ho\n", True)


def test_an_edit_applies_to_what_the_file_is_now_and_never_undoes_the_persons_work(desk: Desk) -> None:
    """Cases 100, 101."""
    desk.commit({"a.txt": "one\ntwo\nthree\n", "b.txt": "whole\n"})
    desk.answers(
        ask(call("read", path="a.txt"), call("read", path="b.txt")),
        ask(shell("sed -i s/one/ONE/ a.txt; echo mine >> b.txt")),  # anybody: a formatter, a hook, the person
        ask(edit("a.txt", "three", "3"), call("write", path="b.txt", content="new\n")),
        ask(call("read", path="b.txt")),
        ask(call("write", path="b.txt", content="new\n"), edit("a.txt", "one", "1")),
        say("Done."),
    )
    assert desk.exec("edit").code == 0
    assert (desk.repo / "a.txt").read_text() == "ONE\ntwo\n3\n"
    assert (desk.repo / "b.txt").read_text() == "new\n"
    results = list(desk.log.results().values())
    assert any("has changed since you last read it" in text for text in results)
    assert "not" in results[-1]


def test_no_match_and_several_matches_change_nothing_and_name_the_places(desk: Desk) -> None:  # cases 102, 103
    same = "def f():\n    return 1\n\n"
    told = edited(
        desk,
        {"a.py": same * 3, "b.py": "x = 1\n", "c.py": "y = 1\n"},
        edit("a.py", "    return 1\n", "    return 2\n"),
        edit("a.py", "def g():", "def h():"),
        call(
            "edit",
            edits=[
                {"path": "b.py", "old": "x = 1", "new": "x = 2"},
                {"path": "c.py", "old": "y = 1", "new": "y = 2"},
                {"path": "c.py", "old": "z = 1", "new": "z = 2"},
            ],
        ),
    )
    assert desk.git("status", "--short") == ""
    assert all(number in told[0] for number in ("2", "5", "8"))
    assert "No file was changed" in told[2]


def test_many_places_and_several_files_are_changed_as_one(desk: Desk) -> None:  # case 103
    edits = [
        {"path": "a.py", "old": "x", "new": "y", "all": True},
        {"path": "sub/b.py", "old": "1", "new": "2"},
        {"path": "sub/b.py", "old": "3", "new": "4"},
    ]
    (told,) = edited(desk, {"a.py": "x x x\n", "sub/b.py": "1 3\n"}, call("edit", edits=edits))
    assert desk.git("status", "--short") == " M a.py\n M sub/b.py\n"
    assert ((desk.repo / "a.py").read_text(), (desk.repo / "sub/b.py").read_text()) == ("y y y\n", "2 4\n"), told
    started = desk.log.of("tool.started")
    assert len(started) == 1


def test_a_name_means_one_file_and_no_other_of_the_same_name(desk: Desk) -> None:  # case 105
    files = {"public/css/home.css": "a { }\n", "public/mobile/css/home.css": "a { }\n"}
    told = edited(
        desk, files, edit("css/home.css", "a", "b"), edit("home.css", "a", "b"), edit("Public/css/home.css", "a", "b")
    )
    assert desk.git("status", "--short") == ""
    assert all("does not exist" in text for text in told)


def test_an_edit_is_whole_or_not_there_when_the_disk_refuses(desk: Desk) -> None:  # case 099
    desk.commit({"a.txt": "old\n" * 1000, "shut/b.txt": "old\n"})
    (desk.repo / "shut").chmod(0o500)
    (desk.repo / "shut/b.txt").chmod(0o400)
    both = [{"path": name, "old": "old\n", "new": "new\n", "all": True} for name in ("a.txt", "shut/b.txt")]
    desk.answers(ask(call("edit", edits=both)), say("It is shut."))
    done = desk.pieria("exec", "edit", before=UNPRIVILEGED)
    assert (done.code, done.out) == (0, b"It is shut.\n")
    assert (desk.repo / "a.txt").read_text() == "old\n" * 1000
    assert sorted(os.listdir(desk.repo)) == [".git", "a.txt", "shut"]
    assert os.listdir(desk.repo / "shut") == ["b.txt"]
    (desk.repo / "shut").chmod(0o700)
