"""The contract of core.ports.Model, held by the adapter over a real socket and by the fake in process alike."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from pieria.core.ports import Answer, AnswerCall, BrokenStream, Failure
from pieria.core.values import Usage
from pieria.models.exchange import Timeouts
from pieria.models.script import Received, ScriptedAnswer, ScriptedCall, rendered
from tests.models.conftest import Start, body

CALLS = [{"name": "read", "arguments": {"path": "a"}}, {"name": "shell", "arguments": '{"command": "ls \u2028"}'}]
USAGE = {
    "prompt_tokens": 90,
    "completion_tokens": 12,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
COUNTED = Usage(input=90, output=12, cached=64, reasoning=5)


async def test_a_whole_answer_arrives_as_it_was_given(start: Start) -> None:
    asked = await start(
        [{"text": "Grüße 😀\u2028.", "reasoning": "let me see", "calls": CALLS, "usage": USAGE, "chunk_chars": 3}]
    )
    assert await asked.ask(body()) == Answer(
        text="Grüße 😀\u2028.",
        calls=(
            AnswerCall("read", '{"path":"a"}', "call_0"),
            AnswerCall("shell", '{"command": "ls \u2028"}', "call_1"),
        ),
        reasoning="let me see",
        reasoning_field="reasoning_content",
        stop_reason="tool_calls",
        usage=COUNTED,
        model="m",
        response_id="scripted-0",
    )
    assert asked.shown == ["Grü", "ße ", "😀\u2028."]


async def test_the_same_answer_as_one_document_is_the_same(start: Start) -> None:
    answer = {"text": "hi", "reasoning": "hm", "reasoning_field": "reasoning", "calls": CALLS, "usage": USAGE}
    streamed = await (await start([answer])).ask(body())
    asked = await start([{**answer, "whole": True}])
    assert await asked.ask(body()) == streamed
    assert asked.shown == ["hi"]


async def test_the_bytes_received_are_the_bytes_given(start: Start) -> None:
    asked = await start([{"text": "one"}, {"text": "two"}])
    first, second = body(), body("system", "user", "assistant", "user", text="x" * 300_000 + "\u2028")
    assert isinstance(await asked.ask(first), Answer)
    assert isinstance(await asked.ask(second), Answer)
    assert asked.received == [
        Received(sha256(first).hexdigest(), len(first), 0, 1),
        Received(sha256(second).hexdigest(), len(second), 1, 1),
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
async def test_reasoning_is_kept_with_the_name_of_its_field(start: Start, field: str) -> None:
    answer = await (await start([{"text": "x", "reasoning": "because", "reasoning_field": field}])).ask(body())
    assert isinstance(answer, Answer)
    assert (answer.reasoning, answer.reasoning_field) == ("because", field)


async def test_a_count_that_is_not_given_stays_unknown(start: Start) -> None:
    missing = await (await start([{"text": "x", "usage": None}])).ask(body())
    partly = await (await start([{"text": "x", "usage": {"completion_tokens": 3}}])).ask(body())
    assert isinstance(missing, Answer)
    assert isinstance(partly, Answer)
    assert missing.usage is None
    assert partly.usage == Usage(output=3)


async def test_broken_arguments_and_repeated_ids_come_through_untouched(start: Start) -> None:
    raw = ['{"path": "a', '{"a":1,b":2}', '{"a":"\n\x00"}', '{"a":NaN}', '{"a":1,"a":2}', "[" * 5000, '{"a":"\\ud800"}']
    asked = await start([{"calls": [{"name": "t", "arguments": text, "id": "call_0"} for text in raw]}])
    answer = await asked.ask(body())
    assert isinstance(answer, Answer)
    assert answer.calls == tuple(AnswerCall("t", text, "call_0") for text in raw)


async def test_contradictions_and_limits_are_reported_and_not_judged(start: Start) -> None:
    none = await (await start([{"text": "done", "stop_reason": "tool_calls"}])).ask(body())
    calls = await (await start([{"calls": CALLS[:1], "stop_reason": "stop"}])).ask(body())
    cut = await (await start([{"calls": CALLS[:1], "stop_reason": "length", "usage": USAGE}])).ask(body())
    assert isinstance(none, Answer)
    assert isinstance(calls, Answer)
    assert isinstance(cut, Answer)
    assert (none.calls, none.stop_reason) == ((), "tool_calls")
    assert ([call.name for call in calls.calls], calls.stop_reason) == (["read"], "stop")
    assert (cut.stop_reason, cut.usage) == ("length", COUNTED)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"text": " \n"},
        {"reasoning": "only this"},
        {"body": {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}},
    ],
)
async def test_an_empty_answer_that_ended_is_an_answer(start: Start, answer: dict[str, object]) -> None:
    found = await (await start([answer])).ask(body())
    assert isinstance(found, Answer)
    assert (found.text.strip(), found.calls, found.stop_reason) == ("", (), "stop")


async def test_an_empty_body_is_no_answer(start: Start) -> None:
    for raw in ("", "\n\n"):
        assert await (await start([{"raw_body": raw}])).ask(body()) == BrokenStream("the answer was empty", len(raw))


async def test_a_stream_needs_a_finish_reason_or_done(start: Start) -> None:
    neither = await (await start([{"text": "all of it", "stop_reason": None, "done": False}])).ask(body())
    reason = await (await start([{"text": "all of it", "done": False}])).ask(body())
    done = await (await start([{"text": "all of it", "stop_reason": None}])).ask(body())
    whole = await (await start([{"text": "all of it", "stop_reason": None, "whole": True}])).ask(body())
    assert isinstance(neither, BrokenStream)
    assert isinstance(whole, BrokenStream)
    assert isinstance(reason, Answer)
    assert isinstance(done, Answer)
    assert (reason.stop_reason, done.stop_reason) == ("stop", "")


@pytest.mark.parametrize("whole", [False, True])
async def test_a_cut_at_any_byte_never_leaves_half_a_call(start: Start, whole: bool) -> None:  # noqa: FBT001
    """Bytes after the finish reason are not needed: there the answer is whole, and the same."""
    call = ScriptedCall("write", {"path": "a", "content": "b"})
    answer = ScriptedAnswer(text="ok", calls=(call,), chunk_chars=12, usage=None, whole=whole)
    stream = b"".join(rendered(answer, number=0, model="m", request_bytes=0).chunks)
    mark = b'"finish_reason":"tool_calls"'
    enough = len(stream) if whole else stream.index(b"\n", stream.index(mark)) + 2
    made = {"text": "ok", "calls": [{"name": "write", "arguments": call.arguments}], "usage": None, "whole": whole}
    uncut = await (await start([{**made, "chunk_chars": 12}])).ask(body())
    assert isinstance(uncut, Answer)
    faults = [{**made, "chunk_chars": 12, "cut_after_bytes": place} for place in range(len(stream))]
    asked = await start([{**made, "faults": faults}])
    for place in range(len(stream)):
        found = await asked.ask(body())
        if place < enough:
            assert isinstance(found, BrokenStream), (place, found)
            assert found.partial_bytes == place
        else:
            assert found == uncut, place
    assert await asked.ask(body()) == uncut


async def test_the_attempt_after_a_broken_one_starts_from_nothing(start: Start) -> None:
    cut = {"text": "a" * 200, "calls": CALLS, "cut_after_bytes": 2500}
    asked = await start([{"text": "other words", "usage": USAGE, "faults": [cut]}])
    assert isinstance(await asked.ask(body()), BrokenStream)
    assert asked.shown != []
    answer = await asked.ask(body())
    assert isinstance(answer, Answer)
    assert (answer.text, answer.calls, asked.shown[:1]) == ("other words", (), ["other words"])
    assert [received.attempt for received in asked.received] == [1, 2]
    assert len({received.sha256 for received in asked.received}) == 1


async def test_silence_in_the_middle_is_a_broken_stream(start: Start) -> None:
    short = Timeouts(first_byte_s=5, between_bytes_s=0.05)
    asked = await start([{"text": "x" * 100, "stall_after_bytes": 300}], timeouts=short)
    assert await asked.ask(body()) == BrokenStream("stalled: no data for 0.05 s", 300)


async def test_silence_after_the_finish_reason_only_ends_the_wait(start: Start) -> None:
    answer = ScriptedAnswer(text="x", usage=None)
    length = sum(map(len, rendered(answer, number=0, model="m", request_bytes=0).chunks)) - len("data: [DONE]\n\n")
    asked = await start([{"text": "x", "usage": None, "stall_after_bytes": length}], timeouts=Timeouts(tail_s=0.05))
    found = await asked.ask(body())
    assert isinstance(found, Answer)
    assert (found.text, found.stop_reason) == ("x", "stop")


STATUSES = [
    (429, {"error": {"message": "slow down"}}, "rate_limited"),
    (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, "refused"),
    (402, {"error": "no credit"}, "refused"),
    (401, {"error": {"message": "bad key"}}, "unauthorised"),
    (403, {"message": "not for you"}, "unauthorised"),
    (404, {"error": {"message": "no such model"}}, "not_found"),
    (413, "too big", "too_long"),
    (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}, "too_long"),
    (400, {"error": {"message": "no", "code": "context_length_exceeded"}}, "too_long"),
    (422, {"detail": [{"msg": "prompt is too long"}]}, "too_long"),
    (400, {"error": {"message": "messages.1: bad role"}}, "bad_request"),
    (418, "teapot", "bad_request"),
    (408, "late", "overloaded"),
    (409, "conflict", "overloaded"),
    (500, "broken", "overloaded"),
    (503, "later", "overloaded"),
    (529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
    (302, "", "bad_request"),
]


@pytest.mark.parametrize(("status", "said", "kind"), STATUSES)
async def test_a_status_says_what_can_be_done(start: Start, status: int, said: object, kind: str) -> None:
    found = await (await start([{"status": status, "body": said, "headers": {"Retry-After": "7"}}])).ask(body())
    assert isinstance(found, Failure)
    assert (found.kind, found.status, found.retry_after_s) == (kind, status, 7.0)
    assert found.message


async def test_a_redirect_is_not_followed_nor_recommended(start: Start) -> None:
    elsewhere = {"Location": "https://me:hush@evil.example/v1"}
    found = await (await start([{"status": 307, "body": "", "headers": elsewhere}])).ask(body())
    assert isinstance(found, Failure)
    assert found.message.startswith("the server redirects to https://…@evil.example/v1. Redirects are not followed")
    assert "If that server is yours or your provider's" in found.message


async def test_the_answer_after_a_refused_attempt_is_the_answer(start: Start) -> None:
    asked = await start([{"text": "now", "faults": [{"status": 429, "headers": {"Retry-After": "1152"}}]}])
    assert await asked.ask(body()) == Failure("rate_limited", "scripted status 429", 429, 1152.0)
    found = await asked.ask(body())
    assert isinstance(found, Answer)
    assert found.text == "now"


async def test_a_web_page_is_a_bad_answer(start: Start) -> None:
    page = "<!doctype html><html><head><title>Sign in\n to the network</title></head></html>"
    for status in (200, 502):
        found = await (await start([{"raw_body": page, "status": status}])).ask(body())
        assert isinstance(found, Failure)
        assert (found.kind, found.status) == ({200: "bad_answer", 502: "overloaded"}[status], status)
        assert "Sign in to the network" in found.message


ERROR = 'data: {"error":{"message":"Rate limit reached","type":"rate_limit_error","code":429}}\n\n'
ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
TEXT = 'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n'
NO_JSON = "the stream holds something that is no JSON object"
ERRORS = [
    (ERROR, Failure("rate_limited", "Rate limit reached", 429)),
    (ROLE + ERROR, Failure("rate_limited", "Rate limit reached", 429)),
    ('event: error\ndata: {"message":"it is overloaded"}\n\n', Failure("overloaded", "it is overloaded", 200)),
    (
        '{"error":{"message":"it is too much","code":"context_length_exceeded"}}',
        Failure("too_long", "it is too much", 200),
    ),
    ('[{"error":{"code":503,"message":"try later"}}]', Failure("overloaded", "try later", 503)),
    ('{"error":"what"}', Failure("bad_answer", "what", 200)),
    ('{"hello":1}', Failure("bad_answer", 'the answer has no choices: {"hello":1}', 200)),
    (TEXT + ERROR, BrokenStream("an error in the middle of the stream: Rate limit reached", len(TEXT + ERROR))),
    (TEXT + "data: {oops\n\n", BrokenStream(f"{NO_JSON}: {{oops", len(TEXT) + 13)),
]


@pytest.mark.parametrize(("raw", "outcome"), ERRORS)
async def test_an_error_inside_an_answer_is_no_answer(start: Start, raw: str, outcome: object) -> None:
    assert await (await start([{"raw_body": raw}])).ask(body()) == outcome


async def test_the_answer_is_chosen_by_the_messages_and_not_by_the_count_of_requests(start: Start) -> None:
    asked = await start(
        {
            "scripts": [
                {"when": "reviewer", "answers": [{"text": "looks fine"}]},
                {"when": "", "answers": [{"text": "one"}, {"text": "two"}]},
            ]
        }
    )
    texts = []
    for request in (
        body("system", "user", "assistant", "tool"),
        body("system", "user"),
        body("system", "user"),
        body("system", "user", text="you are a reviewer"),
    ):
        found = await asked.ask(request)
        assert isinstance(found, Answer)
        texts.append(found.text)
    assert texts == ["two", "one", "one", "looks fine"]
    beyond = await asked.ask(body("user", "assistant", "assistant"))
    assert beyond == Failure("bad_request", "the script has no answer 2", 400)


async def test_a_cancelled_request_leaves_the_model_usable(start: Start) -> None:
    asked = await start([{"text": "x" * 100, "faults": [{"text": "first words", "stall_after_bytes": 400}]}])
    began = asyncio.Event()
    job = asyncio.create_task(asked.model.stream(body(), lambda _: began.set()))
    await began.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert isinstance(await asked.ask(body()), Answer)


async def test_requests_at_the_same_time_do_not_mix(start: Start) -> None:
    asked = await start([{"text": str(number) * 500} for number in range(8)])
    bodies = [body("user", *["assistant"] * number) for number in range(8)]
    found = await asyncio.gather(*(asked.model.stream(one, lambda _: None) for one in bodies))
    assert [answer.text for answer in found if isinstance(answer, Answer)] == [str(number) * 500 for number in range(8)]
