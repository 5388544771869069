"""Three ways to search find the same files and lines, and nothing of a repository acts while they do."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from time import monotonic

import pytest

from pieria.tools.patterns import PatternError, compiled, ignored, rules
from pieria.tools.scan import contents
from pieria.tools.search import Failed, OutOfTime, Programs, Query, hits, is_common, listing, order, programs

RG, GIT = shutil.which("rg"), shutil.which("git")
WAYS = [
    pytest.param(Programs(rg=RG), id="ripgrep", marks=pytest.mark.needs_rg),
    pytest.param(Programs(git=GIT), id="git"),
    pytest.param(Programs(), id="python"),
]
way = pytest.mark.parametrize("way", WAYS)


def soon() -> float:
    return monotonic() + 20


def put(root: Path, names: dict[str, str | bytes]) -> None:
    for name, content in names.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def git(root: Path, *argv: str) -> None:
    subprocess.run([str(GIT), "-C", str(root), *argv], check=True, capture_output=True)


def names(root: Path, way: Programs) -> list[str]:
    return [os.fsdecode(name) for name in listing(str(root), way, until=soon())]


def found(root: Path, way: Programs, pattern: str, **asked: object) -> list[tuple[str, list[tuple[int, str, bool]]]]:
    query = Query(pattern, ignores_case=bool(asked.get("ignores_case")), context=int(str(asked.get("context", 0))))
    return [
        (os.fsdecode(hit.path), [tuple(line) for line in hit.lines])
        for hit in hits(query, str(root), way, until=soon())
    ]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with everything that ways to search might see differently."""
    root = Path(os.path.realpath(tmp_path)) / "r"
    put(
        root,
        {
            ".gitignore": "*.log\n/build/\nkept/*\n!kept/this\n# note\n\\#odd\nspace\\ \n**/deep/**/x\n",
            "a/b.py": "word\n",
            "a-c": "word\n",
            "a.txt": "word\n",
            "a/.gitignore": "!loud.log\nonly/\n",
            "a/loud.log": "word\n",
            "a/quiet.log": "no word here\n" * 3,
            "a/only/x": "word\n",
            "a/z/only": "word\n",
            "build/x": "word\n",
            "sub/build/x": "word\n",
            "kept/this": "word\n",
            "kept/that": "word\n",
            "#odd": "word\n",
            "space ": "word\n",
            "deep/a/b/x": "word\n",
            "deep/y": "word\n",
            ".github/flow.yml": "word\n",
            ".hidden": "word\n",
            "tracked.log": "word\n",
            "gone": "word\n",
            "crlf": "one\r\nword\r\n\r\nlast word",
            "latin": b"caf\xe9 word\n",
            "bom": b"\xef\xbb\xbfword\n",
            "wide": "\ufeffword é\n".encode("utf-16-le"),
            "binary": b"word\n\0word\n",
            "binary-late": b"word\n" * 50_000 + b"\0",
            "../.gitignore": "*.py\n",
            "é/ü.txt": "WORD wörd\n",
            "nested/.gitignore": "x\n",
            "nested/x": "word\n",
            "nested/y.log": "word\n",
            "new\nline": "word\n",
        },
    )
    git(root, "init", "-q")
    git(root, "add", "-f", "tracked.log", "gone", "a")
    (root / "gone").unlink()
    (root / "link").symlink_to("a.txt")
    (root / "folder-link").symlink_to("a")
    git(root / "nested", "init", "-q")
    with open(os.fsencode(root) + b"/bad\xff.txt", "wb") as file:
        file.write(b"word\n")
    return root


EVERYTHING = [
    ".github/flow.yml",
    ".gitignore",
    ".hidden",
    "a/.gitignore",
    "a/b.py",
    "a/loud.log",
    "a/z/only",
    "a-c",
    "a.txt",
    "bad\udcff.txt",
    "binary",
    "binary-late",
    "bom",
    "crlf",
    "deep/y",
    "kept/this",
    "latin",
    "nested/.gitignore",
    "nested/y.log",
    "new\nline",
    "sub/build/x",
    "wide",
    "é/ü.txt",
]


@way
def test_all_ways_list_the_same_files_in_one_order(tree: Path, way: Programs) -> None:
    assert names(tree, way) == EVERYTHING
    assert [os.fsdecode(name) for name in sorted(map(os.fsencode, EVERYTHING), key=order)] == EVERYTHING


@way
def test_a_folder_inside_is_listed_by_the_rules_above_it(tree: Path, way: Programs) -> None:
    assert names(tree / "a", way) == [".gitignore", "b.py", "loud.log", "z/only"]
    assert names(tree / "kept", way) == ["this"]


@way
def test_an_ignored_folder_that_is_named_is_listed(tree: Path, way: Programs) -> None:
    assert names(tree / "build", way) == ["x"]
    assert names(tree / "a" / "only", way) == ["x"]


@way
def test_without_a_repository_ignore_files_count_all_the_same(tmp_path: Path, way: Programs) -> None:
    put(tmp_path, {".gitignore": "*.log\n", "r/.gitignore": "x\n", "r/x": "", "r/y": "", "r/z.log": ""})
    assert names(tmp_path / "r", way) == [".gitignore", "y"]


@way
def test_all_ways_find_the_same_lines(tree: Path, way: Programs) -> None:
    one = [(1, "word", True)]
    assert found(tree, way, "word") == [
        (".github/flow.yml", one),
        (".hidden", one),
        ("a/b.py", one),
        ("a/loud.log", one),
        ("a/z/only", one),
        ("a-c", one),
        ("a.txt", one),
        ("bad\udcff.txt", one),
        ("bom", one),
        ("crlf", [(2, "word", True), (4, "last word", True)]),
        ("deep/y", one),
        ("kept/this", one),
        ("latin", [(1, "caf\ufffd word", True)]),
        ("nested/y.log", one),
        ("new\nline", one),
        ("sub/build/x", one),
        ("wide", [(1, "word é", True)]),
    ]


@way
def test_context_case_and_line_ends_are_the_same(tree: Path, way: Programs) -> None:
    around = [(1, "one", False), (2, "word", True), (3, "", False), (4, "last word", True)]
    assert dict(found(tree, way, "word$", context=1))["crlf"] == around
    assert dict(found(tree, way, "^$"))["crlf"] == [(3, "", True)]
    assert found(tree, way, "WÖRD", ignores_case=True) == [("é/ü.txt", [(1, "WORD wörd", True)])]
    assert found(tree, way, "^word é$") == [("wide", [(1, "word é", True)])]
    assert found(tree, way, "nothing like it") == []


@way
@pytest.mark.parametrize("pattern", ["wo(?=rd)", r"(o).*\1", r"\Aword\Z", "(?<![a-z])word", r"w\o|word{", "[[]|^one"])
def test_patterns_that_one_program_lacks_are_found_all_the_same(tree: Path, way: Programs, pattern: str) -> None:
    try:
        result: object = found(tree, way, pattern)
    except Failed as problem:
        result = str(problem)
    try:
        expected: object = found(tree, Programs(), pattern)
    except Failed as problem:
        expected = str(problem)
    assert result == expected


@way
def test_a_pattern_or_name_that_starts_with_a_dash_is_no_option(tmp_path: Path, way: Programs) -> None:
    put(tmp_path, {"-v": "--files\n", "--pre=sh": "x --files\n"})
    assert [name for name, _ in found(tmp_path, way, "--files")] == ["--pre=sh", "-v"]
    assert found(tmp_path, way, "-e") == []


@way
def test_a_pattern_without_end_ends_with_the_time(tmp_path: Path, way: Programs) -> None:
    put(tmp_path, {"a": "a" * 200 + "\n"})
    start = monotonic()
    pattern = r"(a+)+(?=b)"
    with pytest.raises(OutOfTime):
        list(hits(Query(pattern), str(tmp_path), way, until=monotonic() + 0.7))
    assert monotonic() - start < 5


@way
def test_a_folder_that_vanished_is_an_error_of_the_world(tmp_path: Path, way: Programs) -> None:
    with pytest.raises(OSError, match="gone"):
        names(tmp_path / "gone", way)


@way
def test_what_a_repository_configures_does_not_act(tmp_path: Path, way: Programs) -> None:
    root, mark = tmp_path / "r", tmp_path / "acted"
    put(root, {"a": "word\n", "act.sh": f"#!/bin/sh\ntouch {mark}\n", ".ignore": "a\n"})
    (root / "act.sh").chmod(0o755)
    git(root, "init", "-q")
    put(root, {".git/info/exclude": "a\n", ".git/hooks/post-index-change": f"#!/bin/sh\ntouch {mark}\n"})
    (root / ".git/hooks/post-index-change").chmod(0o755)
    git(root, "config", "core.fsmonitor", str(root / "act.sh"))
    git(root, "config", "filter.f.clean", str(root / "act.sh"))
    put(root, {".gitattributes": "* filter=f\n"})
    assert ("a", [(1, "word", True)]) in found(root, way, "word")
    assert not mark.exists()


def test_a_listed_file_behind_a_new_link_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, {"r/a/x": "word\n", "outside/x": "word of others\n"})
    root = tmp_path / "r"
    git(root, "init", "-q")
    git(root, "add", ".")
    shutil.rmtree(root / "a")
    (root / "a").symlink_to(tmp_path / "outside")
    assert names(root, Programs(git=GIT)) == []


def test_a_link_is_never_opened(tmp_path: Path) -> None:
    put(tmp_path, {"a": "word\n"})
    (tmp_path / "link").symlink_to("a")
    assert contents(os.fsencode(tmp_path / "a"), 10) == "word\n"
    assert contents(os.fsencode(tmp_path / "a"), 4) is None
    assert contents(os.fsencode(tmp_path / "link"), 10) is None


def test_programs_inside_the_root_or_on_a_relative_path_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, {"r/bin/rg": "#!/bin/sh\n", "bin/rg": "#!/bin/sh\n", "bin/git": "not executable\n"})
    for place in ("r/bin/rg", "bin/rg"):
        (tmp_path / place).chmod(0o755)
    (tmp_path / "links").mkdir()
    (tmp_path / "links/rg").symlink_to(tmp_path / "r/bin/rg")
    root = str(tmp_path / "r")
    assert programs(root, f"bin:.::{tmp_path}/r/bin:{tmp_path}/links:{tmp_path}/bin") == Programs(
        rg=f"{tmp_path}/bin/rg", git=None
    )
    assert programs(root, "") == Programs()


@pytest.mark.parametrize("pattern", ["foo", "a.b*", r"\bx\b", "[a-z]+", "(a|b)?", "(?:a)", "(?P<n>a)", "--x", "(?i)a"])
def test_plain_patterns_go_to_ripgrep(pattern: str) -> None:
    assert is_common(pattern)


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "a*+", "[[a]", "[a&&b]", r"\<a", r"a\Z", r"\Ba", "(?x) a", "(?#c)a"]
)
def test_patterns_with_another_meaning_elsewhere_stay_with_python(pattern: str) -> None:
    assert not is_common(pattern)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py"]),
        ("src/", ["src/a", "src/x/b"], ["src", "x/src/a"]),
        ("**", ["a", "a/b"], []),
        ("./a?", ["ab", "x/ab"], ["a", "abc", "a/"]),
        ("*.{ts,tsx}", ["a.ts", "x/a.tsx"], ["a.js"]),
        ("{a,b/{c,d}}/x", ["a/x", "b/c/x", "b/d/x"], ["c/x"]),
        ("[ab]c", ["ac", "bc"], ["cc", "abc"]),
        ("[!ab]c", ["cc"], ["ac", "/c"]),
        ("a[", ["a["], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
        ("x\ny", ["x\ny"], ["x"]),
    ],
)
def test_globs_match_whole_paths(pattern: str, matching: list[str], others: list[str]) -> None:
    match = compiled(pattern).match
    assert [path for path in matching if not match(path)] == []
    assert [path for path in others if match(path)] == []


@pytest.mark.parametrize("pattern", ["[z-a]", "{a,b}" * 12])
def test_globs_that_cannot_be_read_say_so(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"can't be read|too many"):
        compiled(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 12 + "*b", "a" * 200),
        ("**/a/" * 12 + "**/b", "a/" * 120 + "c"),
        ("**/*a*a*a/" * 8 + "b", "aaaa/" * 120 + "aaaa"),
        ("*?" * 90 + "b", "a" * 255),
    ],
)
def test_no_pattern_takes_long_however_many_wildcards(pattern: str, path: str) -> None:
    began = time.process_time()
    assert not compiled(pattern).match(path)
    assert not ignored(f"/{path}", [("/", rules(pattern))], is_folder=False)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("pattern", ["{a,b}" * 7 + "{a}" * 140])
def test_braces_are_not_multiplied_out_for_seconds(pattern: str) -> None:
    with pytest.raises(PatternError, match="too many"):
        compiled(pattern)
