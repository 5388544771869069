"""Models that answer badly: cut, empty, contradictory, no JSON, no such tool. Each is recorded; nothing crashes."""

from __future__ import annotations

import json

from pieria.models.script import ScriptedAnswer, ScriptedCall, rendered
from tests.e2e.desk import Answer, Desk, ask, call, say, shell

CONTENT = "A file of some length,\nso that a cut falls inside it.\n"
WRITE = ScriptedAnswer(
    text="I write it.",
    calls=(ScriptedCall("write", '{"path":"a.txt","content":' + json.dumps(CONTENT) + "}"),),
)


def test_a_stream_cut_anywhere_runs_nothing_and_the_same_bytes_are_sent_again(desk: Desk) -> None:
    """Cases 136, 138: also where what came so far happens to be valid JSON."""
    whole: Answer = {"text": WRITE.text, "calls": [{"name": "write", "arguments": WRITE.calls[0].arguments}]}
    stream = b"".join(rendered(WRITE, number=0, model="m", request_bytes=0).chunks)
    end = stream.index(b'"finish_reason":"tool_calls"')
    cuts = [0, 1, stream.index(b"tool_calls"), *range(end // 9, end, end // 9), end]
    desk.answers_for(
        {f"cut {cut}.": [{**whole, "faults": [{**whole, "cut_after_bytes": cut}]}, say("Done.")] for cut in cuts}
    )
    places = []
    for cut in cuts:
        place = desk.base / f"cut{cut}"
        place.mkdir()
        places.append(place)
    going = [desk.begin("exec", f"cut {cut}.", "--quiet", cwd=place) for cut, place in zip(cuts, places, strict=True)]
    assert [each.end().out for each in going] == [b"Done.\n"] * len(cuts)
    assert [(place / "a.txt").read_text() for place in places] == [CONTENT] * len(cuts)
    for log in desk.logs():
        assert log.types().count("tool.started") == 1
        first, second = log.data("step.started")[:2]
        assert first["request"]["sha256"] == second["request"]["sha256"]
        assert (first["attempt"], second["attempt"]) == (1, 2)
        assert log.data("step.lost")[0]["reason"] == "broken_stream"
        answers = [message for message in log.messages() if message["role"] == "assistant"]
        assert [answer["content"] for answer in answers] == ["I write it."]  # not doubled


def test_text_and_calls_of_a_lost_attempt_are_gone(desk: Desk) -> None:  # case 138
    desk.commit({})
    lost = ask(shell("touch dead"), text="x" * 200, cut_after_bytes=4000, chunk_chars=8)
    desk.answers(ask(shell("touch alive"), text="Second try.", faults=[lost]), say("Done."))
    done = desk.exec()
    assert (done.code, done.out) == (0, b"Done.\n")
    assert [(desk.repo / name).exists() for name in ("alive", "dead")] == [True, False]
    assert "x" * 50 not in str(desk.log.messages())
    assert "answer was lost" in done.err


def test_broken_arguments_and_unknown_tools_are_answered_in_words_and_never_sent_back(desk: Desk) -> None:
    """Cases 034, 036: the log keeps what was said, the server gets only valid JSON, turns later too."""
    desk.commit({"a.txt": "hi\n"})
    deep = "[" * 100_000
    broken = [
        '{"path": "a.t', '{"path":"a.txt",b":2}', '{"path":"a\n\x00.txt"}',  '{"path":"x","path":"y"}', deep,
        '{"path":NaN}', '{"path":"\\ud800"}', "", "null", '["a.txt"]', '{"path":7}', '{"path":"' + "long " * 400_000,
    ]  # fmt: skip
    calls = [call("read", text) for text in broken]
    calls += [call("Read", path="a.txt"), call("frobnicate", x=1), call("", x=1), call("read\n", path="a.txt")]
    desk.answers(ask(*calls, chunk_chars=8192), say("One."), say("Two."), say("Three."))
    assert desk.exec("one").code == 0
    assert desk.exec("two", "--continue").code == 0
    assert desk.exec("three", "--continue").code == 0
    results = desk.log.results()
    assert len(results) == len(calls)
    assert all("Expected: {" in results[f"lead.1.{number}"] for number in range(12) if broken[number] != '{"path":7}')
    assert "Did you mean 'read'?" in results["lead.1.12"]
    assert "There is no tool 'frobnicate'" in results["lead.1.13"]
    for request in desk.log.requests():
        sent = [each for message in request["messages"] for each in message.get("tool_calls", ())]
        assert all(isinstance(json.loads(each["function"]["arguments"]), dict) for each in sent)
    (kept,) = [data for data in desk.log.data("step.finished") if len(data.get("calls", ())) == len(calls)]
    said = [desk.log.whole(each["arguments"]) for each in kept["calls"]]
    assert said[:7] == [text.replace("\ud800", "�") for text in broken[:7]]
    assert desk.log.path.stat().st_size < 12_000_000


def test_an_empty_answer_is_told_once_and_then_it_is_a_failure(desk: Desk) -> None:  # cases 035, 134
    desk.commit({})
    nothing = [
        say(""), say(" \n\t"), say("", reasoning="I think."), say("", whole=True), say("", stop_reason=None),
        say("", usage=None),
    ]  # fmt: skip
    pairs = [answer for empty in nothing for answer in (empty, ask(shell("true")))]
    desk.in_order(*pairs, say("Here I am."), nothing[0], nothing[2], say("Back."))
    assert desk.exec("hi").out == b"Here I am.\n"
    done = desk.exec("and now", "--continue")
    assert (done.code, "the model gave no answer" in done.err, done.out) == (1, True, b"")
    assert desk.exec("once more", "--continue").out == b"Back.\n"
    sent = [each for each in desk.log.messages() if each["role"] == "assistant"]
    assert all(each.get("tool_calls") or each["content"] for each in sent)  # no empty one is sent back
    assert len(sent) == len(nothing) + 1
    assert [each["kind"] for each in desk.log.data("nudge.given")] == ["empty"] * (len(nothing) + 1)


def test_a_body_without_an_answer_is_asked_for_again(desk: Desk) -> None:  # case 134
    bodies = {"": "answer was lost", "<html><title>Sign in</title></html>": "came instead of an answer: Sign in"}
    desk.answers_for({f"number {n}.": [say("Done.", faults=[say("", raw_body=body)])] for n, body in enumerate(bodies)})
    ended = desk.together(*[("exec", f"number {n}.") for n in range(len(bodies))])
    for said, done in zip(bodies.values(), ended, strict=True):
        assert (done.code, done.out, said in done.err) == (0, b"Done.\n", True)
    assert [[data["attempt"] for data in log.data("step.started")] for log in desk.logs()] == [[1, 2]] * 2


NO_ANSWERS = [
    ("<html><title>502 Bad Gateway</title>" + "x" * 100_000, 200, 1),
    ("<html><title>Not here</title></html>", 404, 1),
    ('{"error": "no"}', 200, 1),
    ("data: {]\n\n", 200, None),
    ('{"choices": []}', 200, None),
    ("\x00\x01\x02\ufffd", 200, None),
]
"""What a server may send instead of an answer, its status, and how that ends (None: it is tried again)."""


def test_what_is_no_answer_at_all_is_said_in_words(desk: Desk) -> None:
    desk.commit({})
    desk.answers_for(
        {f"number {n}.": [say("", raw_body=body, status=status)] for n, (body, status, _) in enumerate(NO_ANSWERS)}
    )
    commands = [("exec", f"number {n}.", "--timeout", "1") for n in range(len(NO_ANSWERS))]
    for (_, _, code), done in zip(NO_ANSWERS, desk.together(*commands), strict=True):
        assert done.code in ((code,) if code else (1, 4, 75)), done
        assert len(done.err) < 3000
        assert done.out == b""


def test_stop_reason_and_content_that_contradict_are_decided_by_content(desk: Desk) -> None:  # case 135
    desk.commit({"a.txt": "hi\n"})
    read = call("read", path="a.txt")
    desk.in_order(
        ask(read, stop_reason="stop"), ask(read, stop_reason="nobody knows"), ask(read, stop_reason=None),
        say("I will read.", stop_reason="tool_calls"), say("There.", stop_reason="end_turn"),
    )  # fmt: skip
    done = desk.exec()
    assert (done.code, done.out) == (0, b"There.\n")
    assert list(desk.log.results().values()) == ["1\thi"] * 3
    assert [data["kind"] for data in desk.log.data("nudge.given")] == ["contradiction"]


def test_a_call_cut_at_the_output_limit_is_not_run(desk: Desk) -> None:  # case 137
    desk.commit({})
    (desk.home / ".config/pieria").mkdir(parents=True)
    (desk.home / ".config/pieria/config.toml").write_text("max_output_tokens = 50\n")
    half = call("write", path="a.txt", content="only half of it")
    full = {"prompt_tokens": 9, "completion_tokens": 50, "total_tokens": 59}
    desk.in_order(
        ask(half, stop_reason="length"), ask(call("write", path="b.txt", content="x")), ask(half, usage=full),
        ask(call("write", path="c.txt", content="x")), say("Both in pieces."),
    )  # fmt: skip
    done = desk.exec()
    assert (done.code, done.out) == (0, b"Both in pieces.\n")
    assert [(desk.repo / name).exists() for name in ("a.txt", "b.txt", "c.txt")] == [False, True, True]
    assert [data["kind"] for data in desk.log.data("nudge.given")] == ["truncated", "truncated"]
    assert "smaller pieces" in str(desk.log.messages())


def test_usage_that_never_came_is_unknown_and_not_zero(desk: Desk) -> None:  # case 140
    desk.commit({})
    desk.answers(ask(shell("true"), usage=None), say("Done.", usage={"prompt_tokens": 700, "completion_tokens": 3}))
    assert desk.exec().code == 0
    told = desk.pieria("log", "stats", desk.log.id, "--json").lines[0]["tokens"]["lead"]
    assert (told["input"], told["output"], told["unknown_steps"]) == (700, 3, 1)


def test_results_go_back_in_the_order_asked_under_ids_that_are_never_used_twice(desk: Desk) -> None:
    """Cases 032, 033: the server calls its calls call_0 each time."""
    desk.commit({"a.txt": "A\n"})
    desk.answers(
        ask(shell("sleep 0.4; echo first"), shell("echo second"), call("read", path="a.txt"), shell("exit 7")),
        ask(shell("echo again"), call("read", path="a.txt")),
        say("Done."),
    )
    assert desk.exec().code == 0
    ended = [record["data"]["call"] for record in desk.log.of("tool.finished")]
    assert ended.index("lead.1.1") < ended.index("lead.1.0")
    messages = desk.log.messages()
    asked = [each["id"] for message in messages for each in message.get("tool_calls", ())]
    told = [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]
    assert [id for id, _ in told] == asked
    assert len(set(asked)) == 6
    assert [content for _, content in told] == [
        "first\n[exit 0]", "second\n[exit 0]", "1\tA", "[exit 7, no output]", "again\n[exit 0]", "1\tA",
    ]  # fmt: skip
