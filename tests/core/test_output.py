"""Raw output becomes text that any server takes: no escapes, no control characters, whole characters, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pieria.core.output import LIMIT, clean


def whole(data: bytes) -> str:
    return clean(data, b"", len(data))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\n\ttext\n", "plain\n\ttext\n"),
        (b"\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[K", "red x"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        (b"\x1b]52;c;aGk=\nb", "\nb"),
        (b"\x1bP1$r0m\x1b\\a\x1b(Bb\x1b7c\x1b", "abc"),
        ("\x9b31mé\x85x".encode(), "éx"),
        (b"\x00a\x07b\x0bc\x7f", "abc"),
        (b"\xff\xfe\x00x", "\ufffd\ufffdx"),
        (b"10%\r20%\r100%\ndone\r\n", "100%\ndone\n"),
        (b"10%\r\x1b[2K20%\r", "20%"),
        (b"N\x08N_\x08x", "Nx"),
        ("עב\u202e\u200bé".encode(), "עב\u202e\u200bé"),
        (b"", ""),
        (b"\r\r\r\n", "\n"),
    ],
)
def test_what_a_terminal_would_not_show_is_gone(raw: bytes, text: str) -> None:
    assert whole(raw) == text


def test_head_and_tail_that_are_all_of_it_join_without_a_seam() -> None:
    data = "aé日😀z".encode()
    for cut in range(len(data) + 1):
        assert clean(data[:cut], data[cut:], len(data)) == "aé日😀z"


def test_a_gap_is_counted_and_cuts_no_character_in_two() -> None:
    data = "é日😀".encode()
    for cut in range(len(data) + 1):
        text = clean(b"x" + data[:cut], data[cut:] + b"y", len(data) + 1000)
        assert "\ufffd" not in text
        assert text.startswith("x")
        assert text.endswith("y")
        assert "[... 998 bytes left out ...]" in text


def test_bytes_that_are_no_text_stay_visible_at_a_seam() -> None:
    assert clean(b"a\xff", b"\xffb", 100) == "a\ufffd\n[... 96 bytes left out ...]\n\ufffdb"


def test_long_output_keeps_its_start_and_more_of_its_end() -> None:
    data = b"".join(b"line %d\n" % n for n in range(100_000))
    text = whole(data)
    head, _, tail = text.partition("\n[... ")
    assert len(text) < LIMIT + 50
    assert head.startswith("line 0\nline 1\n")
    assert tail.endswith("line 99999\n")
    assert len(tail) > len(head) * 1.8
    left_out = int(tail.partition(" ")[0])
    kept = len(head) + 1 + len(tail.partition("]\n")[2])
    assert left_out + kept == len(data)
    assert clean(data[:50_000], data[-50_000:], len(data)) == text


def test_one_endless_line_is_cut_too() -> None:
    text = whole(b"x" * 1_000_000)
    assert text.startswith("xxx")
    assert len(text) < LIMIT + 50


def test_a_million_carriage_returns_are_one_line() -> None:
    data = b"".join(b"%d%%\r" % n for n in range(1_000_000)) + b"done\n"
    assert whole(data) == "done\n"


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 1000))
def test_any_bytes_give_sendable_text_without_controls(head: bytes, tail: bytes, more: int) -> None:
    text = clean(head, tail, len(head) + len(tail) + more, limit=100)
    text.encode()
    assert not [each for each in text if each < " " and each not in "\n\t"]
    assert len(text) <= 100 + 45
