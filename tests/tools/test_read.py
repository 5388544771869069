"""`read` shows text with numbers, says what is odd about a file, and goes on where it stopped."""

from __future__ import annotations

import os
from hashlib import sha256

from pieria.core.values import FileHash
from pieria.tools.base import FILE_BYTES
from tests.tools.conftest import Bench


def test_lines_are_numbered_and_the_hash_is_of_the_whole_file(bench: Bench) -> None:
    path = bench.put("a.py", "one\ntwo\n\nfour\n")
    result = bench.call("read", path="a.py", from_line=2, lines=2)
    assert result.text == "2\ttwo\n3\t\n[lines 2-3 of 4: go on with from_line 4]"
    assert result.details.files == (FileHash(str(path), sha256(path.read_bytes()).hexdigest()),)


def test_a_long_file_is_read_on_to_its_end_without_a_gap(bench: Bench) -> None:
    lines = [f"line {n} " + "x" * (n % 90) for n in range(1, 5001)]
    bench.put("long", "\n".join(lines) + "\n")
    seen: list[str] = []
    start = 1
    while start:
        text = bench.text("read", path="long", from_line=start)
        assert len(text) < 66_000
        body, _, note = text.partition("\n[lines ")
        seen += [row.split("\t", 1)[1] for row in body.split("\n")]
        start = int(note.rpartition(" ")[2].rstrip("]")) if note else 0
    assert seen == lines


def test_a_very_long_line_is_cut_and_said(bench: Bench) -> None:
    bench.put("one", "é" * 100_000)
    text = bench.text("read", path="one")
    assert text.startswith("1\t" + "é" * 2000 + " [... 98000 more characters in this line]\n[")
    assert "no newline at the end" in text
    assert "cut -c" in text


def test_past_the_end_names_the_number_of_lines(bench: Bench) -> None:
    bench.put("a", "x\n")
    assert bench.call("read", path="a", from_line=9).text == "a has 1 line; from_line 9 is past its end."


def test_line_endings_marks_and_encodings_are_said_not_shown(bench: Bench) -> None:
    bench.put("crlf", "a\r\nb\r\n")
    bench.put("mixed", "a\r\nb\n")
    bench.put("bom", b"\xef\xbb\xbfa\n")
    bench.put("wide", "\ufeffaé\n".encode("utf-16-le"))
    bench.put("latin", b"x = 1\n# caf\xe9\n")
    bench.put("mac", b"a\rb\r")
    assert bench.text("read", path="crlf") == "1\ta\n2\tb\n[CRLF line endings]"
    assert bench.text("read", path="mixed") == "1\ta\n2\tb\n[mixed line endings: some CRLF, some LF]"
    assert bench.text("read", path="bom") == "1\ta\n[starts with a byte-order mark]"
    assert bench.text("read", path="wide") == "1\taé\n[UTF-16-LE]"
    assert bench.text("read", path="latin").startswith("1\tx = 1\n2\t# caf\ufffd\n[not UTF-8")
    assert bench.text("read", path="mac") == "1\ta\n2\tb\n[CR line endings]"


def test_empty_binary_and_big_files_are_told_apart(bench: Bench) -> None:
    bench.put("empty", "")
    bench.put("a.png", b"\x89PNG\r\n\x1a\n\0\0")
    bench.put("data", b"abc\0def")
    with (bench.root / "big").open("wb") as file:
        file.truncate(FILE_BYTES + 1)
    assert bench.call("read", path="empty").text == "[empty is empty]"
    assert bench.call("read", path="a.png").text == "a.png is binary: a PNG image, 10 bytes."
    assert bench.call("read", path="data").text == "data is binary: unknown kind, 7 bytes."
    assert bench.call("read", path="big").text == "big is over 20.0 MB: use grep, or shell with head, tail or sed -n."


def test_a_folder_lists_its_first_names(bench: Bench) -> None:
    for n in range(60):
        bench.put(f"many/{n:02}", "")
    text = bench.text("read", path="many")
    assert text.startswith("many is a folder of 60 entries; glob lists more.\n00\n01\n")
    assert text.endswith("49\n[10 more]")


def test_a_missing_file_names_its_neighbours_and_chooses_none(bench: Bench) -> None:
    bench.put("public/css/home.css", "")
    bench.put("public/css/Home.css", "")
    result = bench.call("read", path="public/css/hom.css")
    assert result.error
    assert result.text == "public/css/hom.css does not exist. Near it: public/css/Home.css, public/css/home.css."
    assert bench.call("read", path="nowhere/at/all").text == "nowhere/at/all does not exist. Find it with glob."


def test_examining_never_opens_the_file(bench: Bench) -> None:
    os.mkfifo(bench.root / "pipe")
    facts = bench.examine("read", path="pipe")
    assert facts.error == ""
    assert facts.paths[0].real == str(bench.root / "pipe")
    assert bench.call("read", path="pipe").error


def test_a_start_before_the_first_line_is_refused(bench: Bench) -> None:
    assert bench.examine("read", path="a", from_line=0).error == "from_line and lines must be 1 or more."
