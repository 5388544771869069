"""How servers differ: each of these streams was seen from some server, and each gives the answer that was meant."""

from __future__ import annotations

import msgspec
import pytest

from pieria.core.ports import Answer, AnswerCall
from pieria.core.values import Usage
from pieria.models.answer import Assembly
from pieria.models.reading import parse_json


def assembled(*deltas: object, reason: str | None = "stop", extra: dict[str, object] | None = None) -> Answer:
    assembly = Assembly()
    for delta in deltas:
        assembly.add({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    assembly.add({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **(extra or {})})
    assembly.end()
    return assembly.answer()


def piece(arguments: object = None, *, name: str | None = None, **rest: object) -> dict[str, object]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**rest, "function": function}


def calls(*pieces: object) -> dict[str, object]:
    return {"tool_calls": list(pieces)}


A, B = AnswerCall("a", '{"x":1}', "id1"), AnswerCall("b", '{"y":2}', "id2")
CALLS = {
    "by index, interleaved": (
        [
            calls(piece("", name="a", index=0, id="id1")),
            calls(piece("", name="b", index=1, id="id2")),
            calls(piece('{"x"', index=0), piece('{"y":', index=1)),
            calls(piece("2}", index=1)),
            calls(piece(":1}", index=0)),
        ],
        (A, B),
    ),
    "the later index first": (
        [calls(piece('{"y":2}', name="b", index=1, id="id2")), calls(piece('{"x":1}', name="a", index=0, id="id1"))],
        (A, B),
    ),
    "index as text": (
        [calls(piece('{"x":', name="a", index="0", id="id1")), calls(piece("1}", index="0"))],
        (A,),
    ),
    "every call is number 0": (
        [calls(piece('{"x":1}', name="a", index=0, id="id1")), calls(piece('{"y":2}', name="b", index=0, id="id2"))],
        (A, B),
    ),
    "no index, several in one chunk": (
        [calls(piece('{"x":1}', name="a", id="id1"), piece('{"y":2}', name="b", id="id2"))],
        (A, B),
    ),
    "no index, pieces without id": (
        [
            calls(piece("", name="a", id="id1")),
            calls(piece('{"x":1')),
            calls(piece("}")),
            calls(piece('{"y"', name="b", id="id2")),
            calls(piece(":2}")),
        ],
        (A, B),
    ),
    "neither index nor id, whole calls": (
        [calls(piece('{"x":1}', name="a")), calls(piece('{"x":1}', name="a"))],
        (AnswerCall("a", '{"x":1}'), AnswerCall("a", '{"x":1}')),
    ),
    "neither index nor id, two in one chunk": (
        [calls(piece({"x": 1}, name="a"), piece({"y": 2}, name="b"))],
        (AnswerCall("a", '{"x":1}'), AnswerCall("b", '{"y":2}')),
    ),
    "id and name in every piece": (
        [calls(piece(part, name="a", index=0, id="id1")) for part in ("", '{"x"', ":", "1}")],
        (A,),
    ),
    "name in every piece, no index": (
        [calls(piece(part, name="a")) for part in ('{"x"', ":", "1}")],
        (AnswerCall("a", '{"x":1}'),),
    ),
    "arguments as an object": ([calls(piece({"x": 1}, name="a", index=0, id="id1"))], (A,)),
    "the whole call again at the end": (
        [
            calls(piece('{"x":', name="a", index=0, id="id1")),
            calls(piece("1}", index=0)),
            calls(piece('{"x":1}', name="a", index=0, id="id1")),
        ],
        (A,),
    ),
    "a name in pieces": (
        [calls(piece("", name="read_", index=0)), calls(piece("{}", name="file", index=0))],
        (AnswerCall("read_file", "{}"),),
    ),
    "no arguments at all": ([calls(piece(name="a", index=0, id="id1"))], (AnswerCall("a", "", "id1"),)),
    "one call and no list": ([{"tool_calls": piece('{"x":1}', name="a", id="id1")}], (A,)),
    "an empty piece": ([calls(piece(index=0)), {"tool_calls": None}, {"tool_calls": []}], ()),
    "function_call": (
        [{"function_call": {"name": "a", "arguments": ""}}, {"function_call": {"arguments": '{"x":1}'}}],
        (AnswerCall("a", '{"x":1}'),),
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_are_put_together(case: str) -> None:
    deltas, wanted = CALLS[case]
    assert assembled(*deltas).calls == wanted


def test_content_comes_as_text_or_as_parts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "b"}]
    answer = assembled({"content": "a"}, {"content": parts}, {"content": None}, {"refusal": "no"})
    assert (answer.text, answer.reasoning, answer.reasoning_field) == ("abno", "hm", "")


def test_reasoning_under_two_names_is_kept_once() -> None:
    answer = assembled({"reasoning": "a", "reasoning_content": "a"}, {"reasoning": "b", "reasoning_content": "b"})
    assert (answer.reasoning, answer.reasoning_field) == ("ab", "reasoning_content")
    later = assembled({"reasoning": "a"}, {"reasoning": "b", "reasoning_content": "b"})
    assert (later.reasoning, later.reasoning_field) == ("ab", "reasoning")


def test_a_character_cut_in_two_is_whole_again() -> None:
    assembly = Assembly()
    shown = [
        assembly.add({"choices": [{"delta": parse_json(text)}]})
        for text in ('{"content":"a\\ud83d"}', '{"content":"\\ude00b"}', '{"content":"\\ud800"}', '{"content":"c"}')
    ]
    assembly.end()
    assert assembly.answer().text == "a😀b\ufffdc"
    assert shown == ["a", "😀b", "", "\ufffdc"]


COUNTS = [
    ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, Usage(5, 2)),
    ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(5, None, 4)),
    ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 3}, Usage(5, None, 3)),
    ({"prompt_tokens": 5, "cached_tokens": 0}, Usage(5, None, 0)),
    ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 8}}, Usage(None, 9, None, 8)),
    ({"prompt_tokens": "5", "completion_tokens": -1, "prompt_tokens_details": None}, None),
    ({"prompt_tokens": 5.0, "completion_tokens": True}, None),
    ({}, None),
    (None, None),
]


@pytest.mark.parametrize(("sent", "usage"), COUNTS)
def test_counts_are_read_under_their_names(sent: object, usage: Usage | None) -> None:
    assert assembled({"content": "x"}, extra={"usage": sent}).usage == usage


def test_counts_come_in_any_chunk_and_the_last_ones_hold() -> None:
    assembly = Assembly()
    assembly.add({"usage": {"prompt_tokens": 1}, "choices": []})
    assembly.add({"usage": None, "choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 2}}]})
    assert assembly.answer().usage == Usage(2)


def test_token_ids_and_logprobs_are_kept_when_given() -> None:
    assembly = Assembly()
    assembly.add(
        {
            "prompt_token_ids": [9],
            "choices": [
                {
                    "delta": {"content": "a"},
                    "token_ids": [1, 2],
                    "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -1}]},
                }
            ],
        }
    )
    assembly.add(
        {"choices": [{"delta": {"content": "b"}, "token_ids": [3], "logprobs": None, "finish_reason": "stop"}]}
    )
    answer = assembly.answer()
    assert (answer.token_ids, answer.logprobs) == ((1, 2, 3), (-0.5, -1.0))
    assert (assembled().token_ids, assembled().logprobs) == (None, None)


def test_a_logprob_that_is_no_number_voids_them_all() -> None:
    chunk = parse_json(
        '{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"logprob":-Infinity},{"logprob":1}]},"finish_reason":"stop"}]}'
    )
    assembly = Assembly()
    assert isinstance(chunk, dict)
    assembly.add(chunk)
    assert (assembly.answer().text, assembly.answer().logprobs) == ("a", None)


def test_more_after_a_finish_reason_needs_a_new_end() -> None:
    assembly = Assembly()
    assembly.add({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})
    assert assembly.done
    assembly.add({"choices": [{"delta": calls(piece("{", name="a", index=0))}]})
    assert not assembly.done


def test_a_whole_message_after_deltas_is_not_added_again() -> None:
    assembly = Assembly()
    assembly.add({"choices": [{"delta": {"content": "a"}}]})
    assembly.add({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]})
    assert assembly.answer().text == "a"


def test_other_choices_and_odd_shapes_are_passed_over() -> None:
    assembly = Assembly()
    for choices in (
        None,
        [],
        {},
        [None, 3],
        [{"index": 1, "delta": {"content": "no"}}],
        [{"index": [], "delta": {}}],
        [{"delta": 5}],
        [{"delta": {"content": 5, "tool_calls": [None, "x"]}}],
    ):
        assert assembly.add({"choices": choices, "model": 7, "id": None}) == ""
    assert not assembly.began
    assembly.end()
    assert assembly.answer() == Answer("")


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 100_000, '{"a":' * 100_000])
def test_text_that_is_no_json_is_none(text: str) -> None:
    assert parse_json(text) is None


def test_an_answer_can_always_be_recorded() -> None:
    answer = assembled(
        {"content": "\udc80", "reasoning": "\ud800"}, calls(piece({"x": "\udfff"}, name="\udc81", id="\ud801"))
    )
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer
