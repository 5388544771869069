"""Events come out of a byte stream the same wherever it is cut."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pieria.core.wire.sse import SseEvent, SseParser, TooLong


def parsed(*pieces: bytes, limit_bytes: int = 1000, ended: bool = False) -> list[SseEvent | TooLong]:
    parser = SseParser(limit_bytes=limit_bytes)
    found = [event for piece in pieces for event in parser.feed(piece)]
    return found + parser.finish() if ended else found


STREAM = (
    '\ufeff: a comment\n\ndata: {"a":"\u2028\u0085é😀"}\r\n\r\nevent: error\rdata:one\r\ndata:  two\r\r'
    "id: 7\nretry: 10\ndata\n\nevent: lost\n\ndata: [DONE]\n\n"
).encode()  # fmt: skip
EVENTS = [
    SseEvent('{"a":"\u2028\u0085é😀"}'),
    SseEvent("one\n two", "error"),
    SseEvent(""),
    SseEvent("[DONE]"),
]


def test_the_fields_are_read_and_the_rest_is_passed_over() -> None:
    assert parsed(STREAM) == EVENTS


def test_one_cut_anywhere_changes_nothing() -> None:
    for cut in range(len(STREAM) + 1):
        assert parsed(STREAM[:cut], STREAM[cut:]) == EVENTS, cut


def test_bytes_that_come_one_by_one_give_the_same_events() -> None:
    assert parsed(*(STREAM[place : place + 1] for place in range(len(STREAM)))) == EVENTS


@given(
    st.lists(st.text().filter(lambda text: not {"\n", "\r"} & set(text)), min_size=1),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 400)),
)
def test_any_text_survives_any_cuts(texts: list[str], end: str, cuts: list[int]) -> None:
    stream = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    pieces = [stream[start:stop] for start, stop in itertools.pairwise(places)]
    assert parsed(*pieces, limit_bytes=10**6) == [SseEvent(text) for text in texts]


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert parsed(b"data: \xff\xc3\n\n") == [SseEvent("\ufffd\ufffd")]


def test_an_open_event_is_kept_back_until_the_clean_end() -> None:
    assert parsed(b"data: a\ndata: b") == []
    assert parsed(b"data: a\ndata: b", ended=True) == [SseEvent("a\nb")]
    assert parsed(b"data: a\n", ended=True) == [SseEvent("a")]
    assert parsed(b"data: a\n\n", ended=True) == [SseEvent("a")]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    assert parsed(b"\xef\xbb", b"\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == [SseEvent("a")]


def test_a_line_without_end_is_an_error_value_said_once() -> None:
    assert parsed(*[b"x" * 10] * 200) == [TooLong(1000)]
    assert parsed(b"data: " + b"x" * 2000 + b"\n\ndata: a\n\n", ended=True) == [TooLong(1000)]
    assert parsed(*[b"data: " + b"x" * 100 + b"\n"] * 20, b"\n\n", ended=True) == [TooLong(1000)]


def test_the_limit_is_for_one_event_and_not_for_the_stream() -> None:
    event = b": " + b"c" * 900 + b"\nid: " + b"i" * 900 + b"\ndata: " + b"x" * 900 + b"\n\n"
    assert parsed(*[event] * 5) == [SseEvent("x" * 900)] * 5
    assert parsed(*[bytes([byte]) for byte in event]) == [SseEvent("x" * 900)]
