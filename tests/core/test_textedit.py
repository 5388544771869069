"""Editing text inside bytes: what was not asked to change does not change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pieria.core.textedit import Edit, Mismatch, Spliced, decode, diff, splice
from pieria.core.textedit.encoding import encode


def changed(data: bytes, *edits: Edit) -> bytes:
    outcome = splice(data, edits)
    assert isinstance(outcome, Spliced), outcome
    return outcome.data


def refused(data: bytes, *edits: Edit) -> str:
    outcome = splice(data, edits)
    assert isinstance(outcome, Mismatch), outcome
    return outcome.message


# --- encodings and endings ---------------------------------------------------------------------------------------

CRLF = b"".join(b"line %d\r\n" % number for number in range(1, 101))


def test_a_crlf_file_keeps_its_endings_when_edited_with_lf() -> None:
    assert changed(CRLF, Edit("line 50\nline 51\n", "line fifty\nmore\nline 51\n")) == CRLF.replace(
        b"line 50\r\n", b"line fifty\r\nmore\r\n"
    )


def test_text_that_ends_in_a_newline_adds_no_empty_line() -> None:
    assert changed(CRLF, Edit("line 50\n", "line fifty\n")) == CRLF.replace(b"line 50\r", b"line fifty\r")


def test_old_text_with_crlf_matches_too_and_doubles_nothing() -> None:
    assert changed(CRLF, Edit("line 50\r\n", "a\r\nb\r\n")) == CRLF.replace(b"line 50\r\n", b"a\r\nb\r\n")
    assert changed(b"a\nb\n", Edit("a\r\n", "x\r\ny\r\n")) == b"x\ny\nb\n"


def test_new_lines_take_the_ending_of_their_neighbours() -> None:
    mixed = b"a\r\nb\r\nc\nd\n"
    assert changed(mixed, Edit("b", "b\nB")) == b"a\r\nb\r\nB\r\nc\nd\n"
    assert changed(mixed, Edit("d", "d\nD")) == b"a\r\nb\r\nc\nd\nD\n"
    assert changed(mixed, Edit("a\nb\nc\nd", "A\nb\nc\nD")) == b"A\r\nb\r\nc\nD\n"
    assert changed(b"only\r\nlast", Edit("last", "last\nmore")) == b"only\r\nlast\r\nmore"


@pytest.mark.parametrize(
    ("data", "newline"),
    [(b"a\r\nb\r\nc\n", "\r\n"), (b"a\r\nb\nc\n", "\n"), (b"a\rb", "\r"), (b"a\rb\n", "\n"), (b"", "\n")],
)
def test_a_files_newline_is_what_most_lines_have(data: bytes, newline: str) -> None:
    assert decode(data).newline == newline


def test_a_file_with_cr_alone_keeps_it() -> None:
    assert changed(b"a\rb\rc\r", Edit("a\nb", "a\nx\nb")) == b"a\rx\rb\rc\r"


def test_a_cr_inside_a_line_is_left_alone() -> None:
    assert changed(b"a\rb\nc\n", Edit("c", "d")) == b"a\rb\nd\n"


def test_git_sees_only_the_asked_lines_of_a_crlf_file(tmp_path: Path) -> None:
    for autocrlf in ("true", "false"):
        git = ["git", "-c", f"core.autocrlf={autocrlf}", "-c", "core.safecrlf=false"]
        place = tmp_path / autocrlf
        place.mkdir()
        (place / "f.txt").write_bytes(CRLF)
        subprocess.run([*git, "init", "-q"], cwd=place, check=True)
        subprocess.run([*git, "add", "f.txt"], cwd=place, check=True)
        (place / "f.txt").write_bytes(changed(CRLF, Edit("line 50\n", "fifty\nand more\n")))
        said = subprocess.run([*git, "diff", "--numstat"], cwd=place, check=True, capture_output=True, text=True)
        assert said.stdout.split() == ["2", "1", "f.txt"]


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_stays_and_the_first_line_matches_without_it(mark: str) -> None:
    assert changed("first\nsecond é\n".encode(mark), Edit("first\n", "1ère\n")) == "1ère\nsecond é\n".encode(mark)
    assert changed("first\n".encode(mark), Edit("\ufefffirst", "\ufeffone")) == "one\n".encode(mark)


def test_big_endian_utf_16_is_edited_in_its_own_encoding() -> None:
    data = b"\xfe\xff" + "x = 1\r\n€😀\r\n".encode("utf-16-be")
    assert changed(data, Edit("x = 1\n", "x = 2\n")) == b"\xfe\xff" + "x = 2\r\n€😀\r\n".encode("utf-16-be")


def test_damaged_utf_16_is_refused() -> None:
    assert "not valid" in refused("ab".encode("utf-16") + b"x", Edit("a", "b"))


def test_bytes_that_are_not_utf_8_survive_elsewhere() -> None:
    assert changed(b"x = 1\n# caf\xe9\n", Edit("x = 1", "x = 2")) == b"x = 2\n# caf\xe9\n"
    every = bytes(range(128, 256))
    assert changed(every + b"\nword\n" + every, Edit("word", "term")) == every + b"\nterm\n" + every


def test_text_that_a_file_of_unknown_encoding_cannot_take_is_refused_with_the_reason() -> None:
    japanese = "x = 1\n# 日本語\n".encode("shift_jis")
    assert "not UTF-8" in refused(japanese, Edit("x = 1", "x = '日本'"))
    assert changed(japanese, Edit("x = 1", "x = 2")) == "x = 2\n# 日本語\n".encode("shift_jis")


def test_in_such_a_file_what_an_edit_keeps_need_not_be_ascii() -> None:
    assert changed("é = 1".encode() + b"\xff", Edit("é = 1", "é = 2")) == "é = 2".encode() + b"\xff"


def test_a_lone_surrogate_is_refused() -> None:
    assert "U+D800" in refused(b"a\n", Edit("a", "\ud800"))
    assert "U+DCFF" in refused(b"a\n", Edit("a", "\udcff"))


# --- places ------------------------------------------------------------------------------------------------------


def test_several_matches_are_listed_by_line_and_nothing_is_changed() -> None:
    function = "def f():\n    return 1\n\n"
    said = refused((function * 3).encode(), Edit("return 1", "return 2"))
    assert "lines 2, 5, 8" in said
    assert changed((function * 3).encode(), Edit("return 1", "return 2", replace_all=True)).count(b"return 2") == 3


def test_matches_that_overlap_are_several() -> None:
    assert "several" in refused(b"aaa", Edit("aa", "b"))


def test_no_match_names_the_nearest_line_and_the_first_difference() -> None:
    said = refused(b"def f():\n    total = 1\n    return total\n", Edit("    total = 2\n    return total", "x"))
    assert "line 2" in said
    assert "total = 1" in said
    said = refused(b"alpha\nbeta gamma delta\n", Edit("beta gama delta", "x"))
    assert "line 2" in said
    assert "Nearest" not in refused(b"alpha\n", Edit("0123456789", "x"))


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert "\\xe9" in refused(b"x = 1 # caf\xe9\n", Edit("x = 1 # caf\ufffd\nmore", "y"))


def test_an_empty_old_text_fits_only_an_empty_file() -> None:
    assert changed(b"", Edit("", "a\n")) == b"a\n"
    assert "empty" in refused(b"a", Edit("", "b"))


def test_equal_texts_are_no_edit() -> None:
    assert "same" in refused(b"a", Edit("a", "a"))
    assert "No edit" in refused(b"a")


# --- several edits -----------------------------------------------------------------------------------------------


def test_several_edits_are_all_or_nothing() -> None:
    data = b"one\ntwo\nthree\nfour\n"
    assert changed(data, Edit("four", "4"), Edit("one", "1\n1"), Edit("two", "")) == b"1\n1\n\nthree\n4\n"
    outcome = splice(data, [Edit("one", "1"), Edit("two", "2"), Edit("tree", "3"), Edit("four", "4")])
    assert isinstance(outcome, Mismatch)
    assert (outcome.edit, outcome.message.startswith("Edit 3: ")) == (2, True)


def test_edits_that_overlap_are_refused_and_ones_that_touch_are_not() -> None:
    assert "Edits 1 and 2 overlap at line 1" in refused(b"abc\n", Edit("ab", "x"), Edit("bc", "y"))
    assert "overlap" in refused(b"a(b) a\n", Edit("a", "c", replace_all=True), Edit("a(b)", "c(d)"))
    assert changed(b"abcd\n", Edit("cd", "y"), Edit("ab", "x")) == b"xy\n"


def test_an_edit_that_was_applied_before_is_recognised() -> None:
    edits = [Edit("value = 1", "value = 2"), Edit("name = 'a'", "name = 'b'")]
    once = splice(b"value = 1\nname = 'a'\n", edits)
    assert once == Spliced(b"value = 2\nname = 'b'\n", (), 2)
    again = splice(once.data, edits)
    assert isinstance(again, Spliced)
    assert again.data == once.data
    assert [note[:23] for note in again.notes] == ["Edit 1: Already applied", "Edit 2: Already applied"]
    half = splice(b"value = 2\nname = 'a'\n", edits)
    assert isinstance(half, Spliced)
    assert (half.data, len(half.notes), half.replaced) == (b"value = 2\nname = 'b'\n", 1, 1)


def test_an_insertion_that_is_sent_again_is_warned_of() -> None:
    outcome = splice(b"import os\nimport sys\n", [Edit("import os\n", "import os\nimport sys\n")])
    assert isinstance(outcome, Spliced)
    assert "twice" in outcome.notes[0]
    assert splice(b"import os\n\n", [Edit("import os\n", "import os\nimport sys\n")]).notes == ()


def test_short_text_that_happens_to_be_there_does_not_count_as_applied() -> None:
    assert "not in the file" in refused(b"if x:\n}\n", Edit("missing text", "}"))


# --- white space -------------------------------------------------------------------------------------------------

GO = b"func f() {\n\tif x {\n\t\treturn 1\n\t}\n}\n"


def tolerated(data: bytes, old: str, new: str) -> bytes:
    outcome = splice(data, [Edit(old, new)])
    assert isinstance(outcome, Spliced), outcome
    assert "white space" in outcome.notes[0]
    return outcome.data


def test_spaces_given_for_tabs_match_and_come_back_as_tabs() -> None:
    for unit in ("    ", "  ", "        "):
        old = f"{unit}if x {{\n{unit * 2}return 1\n{unit}}}\n"
        new = f"{unit}if x {{\n{unit * 2}if y {{\n{unit * 3}return 2\n{unit * 2}}}\n{unit}}}\n"
        assert tolerated(GO, old, new) == (b"func f() {\n\tif x {\n\t\tif y {\n\t\t\treturn 2\n\t\t}\n\t}\n}\n")


def test_a_makefile_keeps_its_tab() -> None:
    assert tolerated(b"all:\n\tcc -o a a.c\n", "all:\n    cc -o a a.c", "all:\n    cc -o b b.c\n    strip b") == (
        b"all:\n\tcc -o b b.c\n\tstrip b\n"
    )


def test_a_block_given_with_less_indentation_goes_to_its_own() -> None:
    data = b"class A:\n    def f(self):\n        if x:\n            y = 1\n            z = 2\n"
    assert tolerated(data, "y = 1\nz = 2\n", "y = 1\nif y:\n    z = 3\n") == data.replace(
        b"            z = 2\n", b"            if y:\n                z = 3\n"
    )


def test_tabs_given_for_spaces_come_back_as_spaces() -> None:
    data = b"def f():\n    if x:\n        return 1\n"
    assert tolerated(data, "\tif x:\n\t\treturn 1\n", "\tif x:\n\t\tif y:\n\t\t\treturn 2\n") == (
        b"def f():\n    if x:\n        if y:\n            return 2\n"
    )


def test_less_indentation_than_any_matched_line_is_found_too() -> None:
    data = b"def f():\n\tif x:\n\t\treturn 1\n"
    assert tolerated(data, "        return 1\n", "        return 2\n    return 3\n") == (
        b"def f():\n\tif x:\n\t\treturn 2\n\treturn 3\n"
    )


def test_trailing_blanks_are_tolerated_and_a_last_line_without_end_stays_so() -> None:
    assert tolerated(b"a = 1   \nb = 2", "a = 1\nb = 2\n", "a = 3\nb = 4\n") == b"a = 3\nb = 4"


def test_a_tolerant_match_must_be_unique() -> None:
    assert "several places but for white space" in refused(b"  a = 1 \n    a = 1 \n", Edit("\ta = 1", "\ta = 2"))


def test_indentation_that_does_not_correspond_is_refused() -> None:
    data = b"if x:\n    a = 1\nb = 2\n"
    assert "not in the file" in refused(data, Edit("if x:\n    a = 1\n    b = 2", "pass"))


def test_lines_that_lose_their_order_of_depth_are_refused() -> None:
    assert "not in the file" in refused(b"    a = 1\n        b = 2\n", Edit("\ta = 1\n\tb = 2", "\tc = 3"))
    assert "not in the file" in refused(b"  a = 1\n  b = 2\n", Edit("a = 1\n\tb = 2", "c = 3"))


def test_white_space_inside_a_line_is_not_tolerated() -> None:
    assert "not in the file" in refused(b"a = 1\n", Edit("a  = 1", "a = 2"))


# --- laws --------------------------------------------------------------------------------------------------------

bits = st.text(st.sampled_from("ab \t\n\r\u00e9\u65e5"), max_size=12)


@given(st.binary(max_size=60))
def test_whatever_is_decoded_is_encoded_to_the_same_bytes(data: bytes) -> None:
    decoded = decode(data)
    assert encode(decoded.text, decoded) == data


@given(head=st.binary(max_size=20), tail=st.binary(max_size=20), new=st.text("xyz \n", max_size=8))
def test_bytes_before_and_after_a_match_are_untouched(head: bytes, tail: bytes, new: str) -> None:
    outcome = splice(head + b"<needle>" + tail, [Edit("<needle>", new)])
    if isinstance(outcome, Mismatch):
        assert decode(head + b"<needle>" + tail).encoding not in {"utf-8", "unknown-8bit"}
        return
    assert outcome.data.startswith(head)
    assert outcome.data.endswith(tail)
    inserted = outcome.data[len(head) : len(outcome.data) - len(tail)].decode()
    assert inserted.replace("\r\n", "\n").replace("\r", "\n") == new


@given(lines=st.lists(st.sampled_from(["a", "b", " c", ""]), max_size=8), old=bits, new=bits)
def test_a_plain_lf_file_is_changed_as_replacing_says_or_not_at_all(lines: list[str], old: str, new: str) -> None:
    text = "\n".join(lines)
    outcome = splice(text.encode(), [Edit(old, new)])
    wanted = old.replace("\r\n", "\n")
    if isinstance(outcome, Spliced) and not outcome.notes:
        assert text.count(wanted) == 1 or not text
        assert outcome.data.decode() == text.replace(wanted, new.replace("\r\n", "\n"))


@given(st.data())
def test_order_of_edits_does_not_matter(data: st.DataObject) -> None:
    edits = [Edit(f"<{name}>", data.draw(bits)) for name in "abc"]
    shuffled = data.draw(st.permutations(edits))
    text = b"1<a>\r\n2<b>\n3<c>"
    one, other = splice(text, edits), splice(text, shuffled)
    assert isinstance(one, Spliced)
    assert isinstance(other, Spliced)
    assert one.data == other.data


@given(st.text(st.sampled_from("ab\n\r")), st.text(st.sampled_from("ab\n\r")))
def test_a_diff_applies_to_the_old_text_and_gives_the_new(pre: str, post: str) -> None:
    assert patched(pre, diff(pre, post, "f")) == post


def patched(pre: str, said: str) -> str:
    """Apply a unified diff, strictly."""
    if not said:
        return pre
    old, out, at = pre.split("\n"), "", 0
    old = [*(line + "\n" for line in old[:-1]), *([old[-1]] if old[-1] else [])]
    lines = said.split("\n")[2:-1]
    for index, line in enumerate(lines):
        if line.startswith("@@"):
            begin, _, length = line.split(" ")[1][1:].partition(",")
            start = int(begin) if length == "0" else int(begin) - 1
            out += "".join(old[at:start])
            at = start
        elif line.startswith("\\"):
            continue
        else:
            ends = index + 1 < len(lines) and lines[index + 1].startswith("\\")
            text = line[1:] if ends else line[1:] + "\n"
            if line[0] in " -":
                assert old[at] == text
                at += 1
            if line[0] in " +":
                out += text
    return out + "".join(old[at:])


def test_a_diff_of_a_big_file_shows_only_what_changed() -> None:
    pre = "".join(f"line {number}\n" for number in range(200_000))
    said = diff(pre, pre.replace("line 100000\n", "other\n"), "big.txt")
    assert said == (
        "--- a/big.txt\n+++ b/big.txt\n@@ -99998,7 +99998,7 @@\n line 99997\n line 99998\n line 99999\n"
        "-line 100000\n+other\n line 100001\n line 100002\n line 100003\n"
    )
    whole = "".join(f"row {number}\n" for number in range(9000))
    assert patched(pre, diff(pre, whole, "f")) == whole
