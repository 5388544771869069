"""Prompts of any size and any bytes: taken whole, or refused in words before anything is recorded."""

from __future__ import annotations

import pytest

from tests.e2e.desk import Desk, say


def test_a_prompt_of_10_mb_arrives_whole(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("Read it all."), say("More."))
    words = "".join(f"line {number} – ünïcode 🎉\n" for number in range(340_000))
    assert len(words.encode()) > 10_000_000
    done = desk.pieria("exec", "-", stdin=words.encode())
    assert (done.code, done.out) == (0, b"Read it all.\n")
    assert desk.log.whole(desk.log.data("prompt.submitted")[0]["text"]) == words
    assert desk.log.messages()[-1]["content"] == words
    assert desk.pieria("exec", "more", "--continue").out == b"More.\n"
    assert max(len(line) for line in desk.log.path.read_bytes().split(b"\n")) < 1_000_000
    assert desk.log.path.stat().st_size < 2.2 * len(words.encode())


def test_a_prompt_of_100_kb_as_an_argument_arrives_whole(desk: Desk) -> None:  # case 116
    desk.commit({})
    desk.answers(say("Read."))
    words = "word " * 20_000
    assert desk.pieria("exec", words).code == 0
    assert desk.log.messages()[-1]["content"] == words


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"caf\xe9", "not UTF-8: byte 0xe9 at 3"),
        (b"half a pair \xed\xa0\x80", "not UTF-8: byte 0xed at 12"),
        (b"\xff\xfeh\x00i\x00", "not UTF-8: byte 0xff at 0"),
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"x" * 50_000_001, "longer than"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_place(desk: Desk, data: bytes, said: str) -> None:
    desk.answers(say("Never asked."))
    (desk.base / "prompt").write_bytes(data)
    ways: list[tuple[str | bytes, ...]] = [("exec", "-")]
    if data == b"caf\xe9":
        ways += [("exec", "--prompt-file", str(desk.base / "prompt")), ("exec", data)]
    for done in desk.together(*ways, stdin=data):
        assert (done.code, said in done.err, "hint:" in done.err) == (2, True, True), done.err
    assert desk.logs() == []
    assert desk.model[0].received == []


def test_a_prompt_file_that_is_none_is_named(desk: Desk) -> None:
    for done in desk.together(*[("exec", "--prompt-file", path) for path in ("nowhere", "/", "/dev/null", "")]):
        assert (done.code, "hint:" in done.err) == (2, True), done.err
    done = desk.pieria("exec", "words", "--prompt-file", "x")
    assert (done.code, "give one" in done.err) == (2, True)


@pytest.mark.parametrize("words", ["--help me", "-v", "\x1b[31mred", "a\u2028b\x85c", "'; rm -rf / #", "�"])
def test_odd_words_are_just_words(desk: Desk, words: str) -> None:
    desk.commit({})
    desk.answers(say("Fine."))
    assert desk.pieria("exec", "--quiet", "--", words).out == b"Fine.\n"
    assert desk.log.messages()[-1]["content"] == words
