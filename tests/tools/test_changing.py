"""`edit` and `write` touch what was asked, all or nothing, on the file as it is now."""

from __future__ import annotations

from hashlib import sha256

from pieria.core.ports import Applied
from pieria.core.values import Examined
from tests.tools.conftest import Bench

# --- edit --------------------------------------------------------------------------------------------------------


def test_an_edit_says_what_changed(bench: Bench) -> None:
    bench.put("a.py", "def f():\n    return 1\n")
    text = bench.text("edit", path="a.py", edits=[{"old": "return 1", "new": "return 2"}])
    assert text == (
        "Edited a.py in 1 place.\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2"
    )
    assert (bench.root / "a.py").read_text() == "def f():\n    return 2\n"


def test_edits_of_several_files_are_one_change(bench: Bench) -> None:
    bench.put("a", "one\ntwo\n")
    bench.put("b", "three\n")
    edits = [{"old": "one", "new": "1"}, {"path": "b", "old": "three", "new": "3"}, {"old": "two", "new": "2"}]
    facts = bench.examine("edit", path="a", edits=edits)
    assert [(change.path, change.post) for change in facts.changes] == [
        (str(bench.root / "a"), "1\n2\n"),
        (str(bench.root / "b"), "3\n"),
    ]
    assert facts.changes[0].pre_sha256 == sha256(b"one\ntwo\n").hexdigest()
    assert facts.changes[0].post_sha256 == sha256(b"1\n2\n").hexdigest()
    bench.call("edit", path="a", edits=edits)
    assert ((bench.root / "a").read_text(), (bench.root / "b").read_text()) == ("1\n2\n", "3\n")


def test_one_edit_that_fails_leaves_all_files_alone(bench: Bench) -> None:
    bench.put("a", "one\n")
    bench.put("b", "three\n")
    edits = [{"old": "one", "new": "1"}, {"path": "b", "old": "four", "new": "4"}]
    result = bench.call("edit", path="a", edits=edits)
    assert result.error
    assert result.text == "b: The old text is not in the file. Nothing was changed. No file was changed."
    assert (bench.root / "a").read_text() == "one\n"


def test_two_names_of_one_file_are_one_file(bench: Bench) -> None:
    bench.put("a", "one\ntwo\n")
    (bench.root / "link").symlink_to("a")
    edits = [{"path": "a", "old": "one", "new": "1"}, {"path": "./link", "old": "two", "new": "2"}]
    bench.call("edit", edits=edits)
    assert (bench.root / "a").read_text() == "1\n2\n"
    assert (bench.root / "link").is_symlink()


def test_an_edit_works_on_what_the_file_is_now(bench: Bench) -> None:
    path = bench.put("a", "one\ntwo\n")
    bench.call("read", path="a")
    path.write_text("ONE\ntwo\n")
    bench.call("edit", path="a", edits=[{"old": "two", "new": "2"}])
    assert path.read_text() == "ONE\n2\n"


def test_bytes_outside_the_match_stay(bench: Bench) -> None:
    path = bench.put("latin", b"x = 1\r\n# caf\xe9\r\n")
    text = bench.text("edit", path="latin", edits=[{"old": "x = 1", "new": "x = 2\ny = 3"}])
    assert path.read_bytes() == b"x = 2\r\ny = 3\r\n# caf\xe9\r\n"
    assert " # caf\ufffd" in text
    text.encode()


def test_edits_that_change_nothing_are_refused_with_the_reason(bench: Bench) -> None:
    bench.put("a", "new text\n")
    assert "the same" in bench.text("edit", path="a", edits=[{"old": "new", "new": "new"}])
    again = bench.call("edit", path="a", edits=[{"old": "old text", "new": "new text"}])
    assert again.error
    assert "Already applied" in str(again.text)
    assert bench.text("edit", path="a", edits=[]) == "edits is empty: nothing to do."


def test_an_edit_without_a_file_says_how_to_get_one(bench: Bench) -> None:
    assert "names no path" in bench.text("edit", edits=[{"old": "a", "new": "b"}])
    missing = bench.text("edit", path="new.py", edits=[{"old": "a", "new": "b"}])
    assert missing == "new.py does not exist. Find it with glob. New files are made with write."
    bench.put("data", b"a\0b")
    assert bench.text("edit", path="data", edits=[{"old": "a", "new": "b"}]) == "data is binary: not edited."


def test_errors_before_the_ruling_keep_private_content_private(bench: Bench) -> None:
    bench.put(".env", "TOKEN=hunter2\n")
    outside = bench.root.parent / "outside"
    outside.write_text("TOKEN=hunter2\n")
    for path in (".env", "../outside"):
        facts = bench.examine("edit", path=path, edits=[{"old": "TOKEN=hunter1", "new": "x"}])
        assert facts.error == f"{path}: an edit does not fit. Read it, then repeat."
        assert facts.paths[0].given == path


def test_the_result_of_an_allowed_edit_shows_no_line_of_a_secret_file(bench: Bench) -> None:
    bench.put(".env", "A=1\nTOKEN=hunter2\n")
    assert bench.text("edit", path=".env", edits=[{"old": "A=1", "new": "A=2"}]) == "Edited .env in 1 place."


def test_a_long_diff_is_cut_to_sixty_lines(bench: Bench) -> None:
    bench.put("a", "x\n" * 300)
    text = bench.text("edit", path="a", edits=[{"old": "x", "new": "y", "all": True}])
    assert text.startswith("Edited a in 300 places.\n")
    assert text.count("\n") == 61
    assert text.endswith("more lines of diff]")


def test_other_ends_than_done_are_errors_that_say_what_to_do(bench: Bench) -> None:
    bench.put("a", "one\n")
    tool = bench.tools["edit"]
    facts = bench.examine("edit", path="a", edits=[{"old": "one", "new": "1"}])

    def said(outcome: Applied) -> tuple[str, bool, bool]:
        result = tool.applied(facts, outcome)
        return str(result.text), result.error, result.details.conflict

    meantime = "Nothing was changed: a changed in the meantime. Read again, then repeat."
    mixed = "Only a part was changed, and the rest could not be: read a before you go on. b is new."
    assert said(Applied("conflict")) == (meantime, True, True)
    assert said(Applied("none", detail="The disk is full.")) == ("Nothing was changed. The disk is full.", True, False)
    assert said(Applied("mixed", detail="b is new.")) == (mixed, True, True)


# --- write -------------------------------------------------------------------------------------------------------


def test_a_new_file_comes_with_its_folders(bench: Bench) -> None:
    assert bench.text("write", path="a/b/c.txt", content="hi\nyo") == "Created a/b/c.txt: 2 lines, 5 bytes."
    assert (bench.root / "a/b/c.txt").read_bytes() == b"hi\nyo"


def test_an_existing_file_must_have_been_read(bench: Bench) -> None:
    path = bench.put("a", "one\n")
    unread = bench.call("write", path="a", content="two\n")
    assert unread.text == "a exists, and you have not read it. Read it first, or make the change with edit."
    bench.call("read", path="a")
    path.write_text("theirs\nmore\n")
    stale = bench.call("write", path="a", content="two\n")
    assert stale.error
    assert stale.text == (
        "a has changed since you last read it. It has 2 lines now. Read it again, or make the change with edit."
    )
    assert path.read_text() == "theirs\nmore\n"
    bench.call("read", path="a")
    assert bench.text("write", path="a", content="two\n") == "Replaced a: 1 line, 4 bytes."
    assert bench.text("write", path="a", content="three\n") == "Replaced a: 1 line, 6 bytes."


def test_the_same_bytes_again_with_another_time_are_no_change(bench: Bench) -> None:
    path = bench.put("a", "one\n")
    bench.call("read", path="a")
    path.write_text("one\n")
    assert not bench.call("write", path="a", content="two\n").error


def test_line_endings_mark_and_encoding_of_a_replaced_file_are_kept(bench: Bench) -> None:
    crlf, bom = bench.put("crlf", "a\r\nb\r\n"), bench.put("bom", b"\xef\xbb\xbfa\n")
    wide = bench.put("wide", "\ufeffa\n".encode("utf-16-be"))
    latin = bench.put("latin", b"caf\xe9\n")
    for name in ("crlf", "bom", "wide", "latin"):
        bench.call("read", path=name)
    assert bench.text("write", path="crlf", content="x\ny\n").endswith("\nIts CRLF line endings were kept.")
    assert bench.text("write", path="bom", content="\ufeffx\n").endswith("\nIts byte-order mark was kept.")
    assert bench.text("write", path="wide", content="x\n").endswith("\nIts encoding (UTF-16-BE) was kept.")
    assert bench.text("write", path="latin", content="é\n").endswith("\nIt was not UTF-8 before; it is now.")
    assert crlf.read_bytes() == b"x\r\ny\r\n"
    assert bom.read_bytes() == b"\xef\xbb\xbfx\n"
    assert wide.read_bytes() == "\ufeffx\n".encode("utf-16-be")
    assert latin.read_bytes() == "é\n".encode()


def test_a_file_turned_folder_deleted_or_in_the_way_is_said(bench: Bench) -> None:
    path = bench.put("a", "one\n")
    bench.call("read", path="a")
    path.unlink()
    assert bench.text("write", path="a", content="x") == "Created a: 1 line, 1 byte."
    path.unlink()
    path.mkdir()
    assert "is a folder" in bench.text("write", path="a", content="x")
    assert bench.text("write", path="b/", content="x") == "b/ names a folder: give the file's name too."
    bench.put("plain", "")
    assert bench.text("write", path="plain/x", content="") == (
        f"{bench.root}/plain is not a folder: nothing can be made in it."
    )


def test_writing_what_is_there_is_refused(bench: Bench) -> None:
    bench.put("a", "one\n")
    bench.call("read", path="a")
    assert bench.text("write", path="a", content="one\n") == "a has exactly this content already: nothing to do."


def test_an_approval_is_bound_to_path_content_and_what_was_there(bench: Bench) -> None:
    def action(path: str, content: str) -> str:
        facts: Examined = bench.examine("write", path=path, content=content)
        assert facts.error == ""
        return facts.action

    first = action("a", "x")
    assert first == action("./a", "x")
    assert len({first, action("b", "x"), action("a", "y")}) == 3
    (bench.root / "a").write_text("now there\n")
    bench.call("read", path="a")
    assert action("a", "x") != first
