"""`grep` and `glob` answer within bounds, say what they left out, and keep secrets where they are."""

from __future__ import annotations

import os
import time

import pytest

from pieria.core.ports import Place
from pieria.tools.grep import RESULT_BYTES, SPEC
from pieria.tools.kit import kit
from tests.tools.conftest import Bench


@pytest.fixture(params=["path", "bare"], ids=["programs", "python-alone"])
def both(request: pytest.FixtureRequest, bench: Bench) -> Bench:
    search_path = os.environ["PATH"] if request.param == "path" else ""
    return bench._replace(tools=kit(bench.files, known=bench.known.get, search_path=search_path))


def test_matches_are_grouped_by_file_with_numbers(both: Bench) -> None:
    both.put("b.py", "x\nword here\n")
    both.put("a/c.py", "a word\n\n\nword\n")
    assert both.text("grep", pattern="word") == "a/c.py\n1:a word\n4:word\nb.py\n2:word here"
    assert both.text("grep", pattern="^word", context=1) == "a/c.py\n3-\n4:word\nb.py\n1-x\n2:word here"
    both.put("d", "word\n\n\n\nword\n")
    assert both.text("grep", pattern="word", path="d", context=1) == "d\n1:word\n2-\n--\n4-\n5:word"


def test_path_and_glob_narrow_the_search(both: Bench) -> None:
    for name in ("a.py", "a.js", "src/b.py", "src/c.js"):
        both.put(name, "word\n")
    assert both.text("grep", pattern="word", path="src") == "src/b.py\n1:word\nsrc/c.js\n1:word"
    assert both.text("grep", pattern="word", glob="*.py") == "a.py\n1:word\nsrc/b.py\n1:word"
    assert both.text("grep", pattern="word", glob="src/*.{js,ts}") == "src/c.js\n1:word"
    assert both.text("grep", pattern="WORD", path="a.js", ignore_case=True) == "a.js\n1:word"


def test_what_does_not_fit_is_counted(both: Bench) -> None:
    for n in range(30):
        both.put(f"f{n:02}", "word\n" * 20)
    text = both.text("grep", pattern="word")
    assert text.startswith("f00\n1:word\n")
    assert text.endswith("\n[200 of 600 matches shown, in 10 of 30 files: narrow pattern, path or glob]")
    assert both.text("grep", pattern="word", max=3).startswith("f00\n1:word\n2:word\n3:word\n[3 of 600 ")


def test_long_lines_and_long_results_are_cut(both: Bench) -> None:
    both.put("long", "word" + "é" * 3000 + "\n")
    both.put("many", ("word" + "x" * 300 + "\n") * 150)
    text = both.text("grep", pattern="word")
    assert len(text.encode()) < RESULT_BYTES + 300
    assert "[... 2604 more characters]" in text
    assert "of 151 matches shown, in 2 of 2 files" in text


def test_context_stops_where_the_matches_shown_do(both: Bench) -> None:
    both.put("a", "1 word\n2\n3 word\n4\n5 word\n")
    text = both.text("grep", pattern="word", context=1, max=2)
    assert (
        text == "a\n1:1 word\n2-2\n3:3 word\n4-4\n[2 of 3 matches shown, in 1 of 1 file: narrow pattern, path or glob]"
    )


def test_secret_files_are_named_and_kept_shut_unless_asked_for_by_name(both: Bench) -> None:
    both.put(".env", "TOKEN=hunter2\n")
    both.put("a", "TOKEN\n")
    text = both.text("grep", pattern="TOKEN")
    assert text == "a\n1:TOKEN\n[matches in files that may hold secrets are left out: .env]"
    facts = both.examine("grep", pattern="TOKEN", path=".env")
    assert facts.paths[0].secret
    assert both.text("grep", pattern="TOKEN", path=".env") == ".env\n1:TOKEN=hunter2"


def test_no_match_says_what_was_not_searched(both: Bench) -> None:
    both.put("a", "x\n")
    text = both.text("grep", pattern="word")
    assert text == "No matches. Binary files, ones over 20 MB and what .gitignore names were not searched."


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "The pattern is empty. To list files use glob."),
        ("a(b", "The pattern can't be read: missing ), unterminated subpattern at character 1."),
        ("*", "The pattern can't be read: nothing to repeat at character 0."),
        ("(?=(", "The pattern can't be read: missing ), unterminated subpattern at position 3"),
        ("a\nb", "The pattern must be one line"),
        ("a\0b", "The pattern must be one line"),
        ("(" * 9000, "The pattern "),
        ("x" * 20_000, "The pattern must be one line of at most 10000 characters"),
        ("x{99999999999999999999}", "The pattern is nested too deeply or repeats too often."),
    ],
)
def test_a_bad_pattern_is_an_error_with_its_position(both: Bench, pattern: str, said: str) -> None:
    both.put("a", "x\n")
    result = both.call("grep", pattern=pattern)
    assert result.error
    assert str(result.text).startswith(said)


def test_git_itself_and_what_is_not_there_are_refused(both: Bench) -> None:
    both.put(".git/config", "word\n")
    both.put("sub/a", "x\n")
    for name in ("grep", "glob"):
        assert both.text(name, pattern="x", path=".git") == "Git's own folder is not searched: ask git by shell."
        assert both.text(name, pattern="x", path="sud") == "sud does not exist. Near it: sub."
    assert both.text("glob", pattern="x", path="sub/a") == "sub/a is a file, not a folder."
    assert both.text("grep", pattern="x", glob="[Z-A]").startswith("The pattern '[Z-A]' can't be read: bad character")


def test_files_are_listed_in_order_and_counted(both: Bench) -> None:
    for n in range(600):
        both.put(f"d/{n:03}.py", "")
    both.put("a.py", "")
    text = both.text("glob", pattern="*.py")
    assert text.startswith("a.py\nd/000.py\nd/001.py\n")
    assert text.endswith("d/498.py\n[101 more of 601: narrow pattern or path]")
    assert both.text("glob", pattern="00[12].py", path="d") == "d/001.py\nd/002.py"


def test_names_that_are_no_text_are_shown_escaped(both: Bench) -> None:
    with open(os.fsencode(both.root) + b"/bad\xff.txt", "wb") as file:
        file.write(b"word\n")
    both.put("new\nline\x1b[31m\u202e", "word\n")
    listing = both.text("glob", pattern="**")
    assert listing == "bad\\xff.txt\nnew\\nline\\x1b[31m\\u202e"
    both.text("grep", pattern="word").encode()


def test_a_pattern_of_many_stars_does_not_hang_on_a_name_that_almost_fits(both: Bench) -> None:
    name = "a" * 200
    both.put(name, "word\n")
    began = time.monotonic()
    assert both.text("glob", pattern="*a" * 12 + "*b").startswith("No match")
    assert both.text("glob", pattern="*a" * 12 + "*") == name
    assert both.text("grep", pattern="word", glob="*a" * 12 + "*b").startswith("No match")
    assert time.monotonic() - began < 10


def test_no_match_hints_at_a_folder_of_that_name(both: Bench) -> None:
    both.put("src/a.py", "")
    said = "No match among 1 file below .; what .gitignore names is left out."
    assert both.text("glob", pattern="src") == f"{said} src is a folder: its files are src/**"
    assert both.text("glob", pattern="*.rs") == said


def test_absolute_and_climbing_patterns_are_ruled_on_where_they_point(both: Bench) -> None:
    both.put("src/a.py", "")
    outside = both.root.parent / "other"
    outside.mkdir()
    (outside / "b.py").write_text("")
    assert both.text("glob", pattern=f"{both.root}/src/*.py") == "src/a.py"
    for pattern in (f"{outside}/*.py", "../other/*.py"):
        facts = both.examine("glob", pattern=pattern)
        assert (facts.paths[0].real, facts.paths[0].inside) == (str(outside), False)
    assert both.text("glob", pattern="../other/*.py") == f"{outside}/b.py"


def test_a_search_of_what_lies_outside_is_flagged(bench: Bench) -> None:
    (bench.root / "out").symlink_to(bench.root.parent)
    facts = bench.examine("grep", pattern="x", path="out")
    assert [(path.given, path.real, path.inside) for path in facts.paths] == [("out", str(bench.root.parent), False)]


def test_the_result_is_for_the_place_that_was_ruled_on(bench: Bench) -> None:
    bench.put("a/x", "word\n")
    bench.put("b/x", "word of others\n")
    tool, fields = bench.tools["grep"], bench.fields("grep", {"pattern": "word", "path": "link"})
    (bench.root / "link").symlink_to("a")
    facts = tool.examine(fields, bench.place)
    (bench.root / "link").unlink()
    (bench.root / "link").symlink_to("b")
    assert tool.run(facts, fields, Place(root=str(bench.root))).text == "a/x\n1:word"
    assert facts.access == SPEC.access
