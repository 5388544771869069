"""Prompts of any size and any bytes: taken whole, or refused in words before anything is recorded."""

from __future__ import annotations

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


BAD = [
    (b"caf\xe9", "not UTF-8: byte 0xe9 at 3"),
    (b"half a pair \xed\xa0\x80", "not UTF-8: byte 0xed at 12"),
    (b"\xff\xfeh\x00i\x00", "not UTF-8: byte 0xff at 0"),
    (b"", "empty"),
    (b" \n\t ", "empty"),
    (b"x" * 50_000_001, "longer than"),
]
"""Bytes that are no prompt, and what is said of them."""


def test_bytes_that_are_no_text_are_refused_with_their_place(desk: Desk) -> None:
    server = desk.answers(say("Never asked."))
    ended = [(said, desk.begin("exec", "-", stdin=data)) for data, said in BAD]
    (desk.base / "prompt").write_bytes(b"caf\xe9")
    ways = (("exec", "--prompt-file", str(desk.base / "prompt")), ("exec", b"caf\xe9"))
    ended += [("not UTF-8: byte 0xe9 at 3", desk.begin(*words)) for words in ways]
    for said, going in ended:
        done = going.end()
        assert (done.code, said in done.err, "hint:" in done.err) == (2, True, True), done.err
    assert (desk.logs(), server.received) == ([], [])


def test_a_prompt_file_that_is_none_is_named(desk: Desk) -> None:
    for done in desk.together(*[("exec", "--prompt-file", path) for path in ("nowhere", "/", "/dev/null", "")]):
        assert (done.code, "hint:" in done.err) == (2, True), done.err
    done = desk.pieria("exec", "words", "--prompt-file", "x")
    assert (done.code, "give one" in done.err) == (2, True)


def test_odd_words_are_just_words(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("Fine."))
    odd = ["--help me", "-v", "\x1b[31mred", "a\u2028b\x85c", "'; rm -rf / #", "�", "-"]
    ended = desk.together(
        *[("exec", "--quiet", "--", words) for words in odd[:-1]], ("exec", "-", "--quiet"), stdin=b"-"
    )
    assert [done.out for done in ended] == [b"Fine.\n"] * len(odd)
    assert sorted(log.messages()[-1]["content"] for log in desk.logs()) == sorted(odd)
    assert desk.pieria("sessions").code == 0
