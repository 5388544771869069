"""Steps: answers that can't stand as they are, attempts that did not count, and when to try again."""

from __future__ import annotations

import pytest

from pieria.core import clock
from pieria.core.effects import CallModel, SetTimer
from pieria.core.events.model import StepFailed, StepFinished, StepLost, StepPartial, StepStarted
from pieria.core.events.turns import NudgeGiven, TimerSet, TurnFinished
from pieria.core.turn import MAX_ATTEMPTS, NUDGES, flaw_of, length_of
from pieria.core.values import AssistantMessage, Blob, Call, SystemMessage, Usage, UserMessage
from tests.unit.story import LEAD, Story

CALL = (Call("c", "shell", "{}"),)


def asked(**settings) -> Story:
    story = Story(**settings)
    story.prompt()
    return story


# --- flaws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        (StepFinished("done", stop_reason="stop"), ""),
        (StepFinished("done"), ""),
        (StepFinished("done", stop_reason="whatever"), ""),
        (StepFinished("", CALL, stop_reason="stop"), ""),
        (StepFinished("", CALL, stop_reason="tool_calls"), ""),
        (StepFinished("", CALL, stop_reason=""), ""),
        (StepFinished(Blob(1, "a" * 64, 4000)), ""),
        (StepFinished(""), "empty"),
        (StepFinished(" \n\t"), "empty"),
        (StepFinished("", reasoning="hm"), "empty"),
        (StepFinished("", stop_reason="tool_calls"), "empty"),
        (StepFinished("", stop_reason="length"), "truncated"),
        (StepFinished("", CALL, stop_reason="length"), "truncated"),
        (StepFinished("x", CALL, stop_reason="max_tokens"), "truncated"),
        (StepFinished("x", CALL, stop_reason="max_output_tokens"), "truncated"),
        (StepFinished("", CALL, stop_reason="tool_calls", usage=Usage(output=100)), "truncated"),
        (StepFinished("", CALL, stop_reason="tool_calls", usage=Usage(output=101)), "truncated"),
        (StepFinished("", CALL, stop_reason="tool_calls", usage=Usage(output=99)), ""),
        (StepFinished("", CALL, usage=Usage(input=100)), ""),
        (StepFinished("x", stop_reason="stop", usage=Usage(output=100)), ""),
        (StepFinished("cut he", stop_reason="length"), "cut_text"),
        (StepFinished("I call now", stop_reason="tool_calls"), "contradiction"),
        (StepFinished("I call now", stop_reason="tool_use"), "contradiction"),
        (StepFinished("I call now", stop_reason="function_call"), "contradiction"),
    ],
)
def test_an_answer_is_judged_by_what_it_holds(answer, flaw) -> None:
    assert flaw_of(answer, 100) == flaw


def test_without_a_known_limit_the_count_of_tokens_proves_nothing() -> None:
    assert flaw_of(StepFinished("", CALL, usage=Usage(output=10**6)), None) == ""


FLAWED = {
    "empty": StepFinished("", reasoning="hm"),
    "truncated": StepFinished("wri", CALL, stop_reason="length"),
    "contradiction": StepFinished("now", stop_reason="tool_use"),
    "cut_text": StepFinished("to be conti", stop_reason="length"),
}


@pytest.mark.parametrize("flaw", FLAWED)
def test_a_flawed_answer_is_tried_once_more_with_a_word_about_it(flaw) -> None:
    story = asked()
    story.ends(FLAWED[flaw])
    assert story.said(NudgeGiven) == [NudgeGiven(flaw, NUDGES[flaw])]
    assert story.sent[LEAD][-1] == UserMessage(NUDGES[flaw], label=flaw)
    assert [event.attempt for event in story.said(StepStarted)] == [1, 1]
    assert story.agent().turn.calls == ()


@pytest.mark.parametrize("flaw", ["empty", "truncated"])
def test_a_second_flawed_answer_in_a_row_fails_the_turn(flaw) -> None:
    story = asked()
    story.ends(FLAWED[flaw])
    story.ends(FLAWED[flaw])
    what = "empty answers" if flaw == "empty" else f"unusable answers ({flaw})"
    assert story.said(TurnFinished) == [TurnFinished("failed", f"the model gave no answer: 2 {what} in a row")]
    assert len(story.said(NudgeGiven)) == 1


@pytest.mark.parametrize("flaw", ["empty", "truncated"])
def test_a_flawed_answer_is_never_sent_back_and_runs_nothing(flaw) -> None:
    story = asked()
    story.ends(FLAWED[flaw])
    story.ends(FLAWED[flaw])
    story.prompt("again")
    assert [message for message in story.sent[LEAD] if isinstance(message, AssistantMessage)] == []
    assert story.agent().last_text == ""


def test_words_that_come_again_without_the_announced_call_are_the_answer() -> None:
    story = asked()
    story.ends(FLAWED["contradiction"])
    story.ends(FLAWED["contradiction"])
    assert story.said(TurnFinished) == [TurnFinished("done")]
    assert story.agent().last_text == "now"


def test_a_text_cut_at_the_limit_stands_and_is_continued() -> None:
    story = asked()
    story.ends(FLAWED["cut_text"])
    assert story.sent[LEAD][-2:] == [AssistantMessage("to be conti"), UserMessage(NUDGES["cut_text"], "cut_text")]
    story.answers(text="nued")
    assert story.said(TurnFinished) == [TurnFinished("done")]


def test_a_text_cut_twice_ends_the_turn_with_what_there_is() -> None:
    story = asked()
    story.ends(FLAWED["cut_text"])
    story.ends(FLAWED["cut_text"])
    assert story.said(TurnFinished) == [TurnFinished("done", "the answer was cut at the output limit")]
    assert story.agent().last_text == "to be conti"


def test_a_sound_answer_in_between_starts_the_count_of_flaws_anew() -> None:
    story = asked()
    for _ in range(3):
        story.ends(FLAWED["empty"])
        story.answers("todo")
        story.looks(0)
        story.finishes(0)
    assert len(story.said(NudgeGiven)) == 3
    assert story.said(TurnFinished) == []


def test_the_agents_own_limit_tells_a_cut_call_whatever_the_reason_says() -> None:
    story = asked(max_output=50)
    story.answers("edit", stop_reason="tool_calls", usage=Usage(10, 50))
    assert story.said(NudgeGiven) == [NudgeGiven("truncated", NUDGES["truncated"])]


def test_reasoning_goes_back_with_the_answer_it_belongs_to() -> None:
    story = asked()
    story.ends(StepFinished("done", reasoning="hm", reasoning_field="reasoning_content"))
    story.prompt("more")
    assert story.sent[LEAD][2] == AssistantMessage("done", (), "hm", "reasoning_content")


def test_length_counts_bytes_of_a_blob_and_characters_of_a_text() -> None:
    assert (length_of(Blob(1, "", 9000)), length_of("four")) == (9000, 4)


# --- attempts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["crash", "capped"])
def test_an_attempt_that_we_cut_ourselves_is_made_again_at_once(reason) -> None:
    story = asked()
    story.ends(StepLost(reason))
    assert [event.attempt for event in story.said(StepStarted)] == [1, 2]
    assert story.said(TimerSet) == []


@pytest.mark.parametrize(
    "event",
    [
        StepLost("broken_stream"), StepLost("stalled"), StepFailed("rate_limited", 429), StepFailed("overloaded", 503),
        StepFailed("network"),
    ],
)  # fmt: skip
def test_what_may_work_later_is_tried_again_after_a_recorded_wait(event) -> None:
    story = asked()
    story.tell(LEAD, event, op="lead.1")
    assert story.decided() == (SetTimer(LEAD, "retry", clock.later(story.time, 1.0)),)
    story.settle()
    assert story.decided() == ()
    story.fires()
    assert [started.attempt for started in story.said(StepStarted)] == [1, 2]
    assert story.agent().turn.timer is None


def test_another_attempt_adds_nothing_to_what_is_sent_and_is_no_new_step() -> None:
    story = asked()
    story.prompt("meanwhile")
    story.ends(StepLost("crash"))
    assert story.sent[LEAD] == [SystemMessage(("You are lead.",)), UserMessage("do it")]
    assert [entry.text for entry in story.agent().unread] == ["meanwhile"]
    assert (story.agent().turn.steps, story.state.steps) == (1, 1)
    assert story.said(StepStarted)[1].request.after == 4


def test_waits_double_from_attempt_to_attempt() -> None:
    story = asked()
    waits = []
    for _ in range(MAX_ATTEMPTS - 1):
        story.ends(StepFailed("overloaded", 503))
        failed, timer = story.records[-2], story.said(TimerSet)[-1]
        waits.append(clock.seconds_between(failed.time, timer.deadline))
        story.fires()
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_no_number_of_attempts_is_too_much_for_fold() -> None:
    story = asked()
    story.tell(LEAD, StepStarted(story.said(StepStarted)[0].request, 5000, "work", "m"))
    story.tell(LEAD, StepLost("crash"), op=story.agent().turn.step.op)
    assert story.decided() == (CallModel(LEAD, 5001),)


@pytest.mark.parametrize("wait_s", [0.0, 2.5, 600.0])
def test_the_servers_word_on_when_to_come_back_is_kept(wait_s) -> None:
    story = asked()
    story.tell(LEAD, StepFailed("rate_limited", 429, retry_after_s=wait_s), op="lead.1")
    due = (SetTimer(LEAD, "retry", clock.later(story.time, wait_s)),) if wait_s else (CallModel(LEAD, 2),)
    assert story.decided() == due


def test_a_wait_longer_than_ten_minutes_ends_the_turn() -> None:
    story = asked()
    story.ends(StepFailed("rate_limited", 429, "come back tomorrow", retry_after_s=601.0))
    assert story.said(TurnFinished) == [TurnFinished("unavailable", "rate_limited: come back tomorrow (HTTP 429)")]


def test_after_the_last_attempt_the_turn_ends_as_unavailable() -> None:
    story = asked()
    for _ in range(MAX_ATTEMPTS - 1):
        story.ends(StepFailed("overloaded", 529, "busy"))
        story.fires()
    story.ends(StepFailed("overloaded", 529, "busy"))
    assert len(story.said(StepStarted)) == MAX_ATTEMPTS
    assert story.said(TurnFinished) == [TurnFinished("unavailable", "overloaded: busy (HTTP 529)")]


def test_broken_streams_without_end_end_the_turn() -> None:
    story = asked()
    for _ in range(MAX_ATTEMPTS - 1):
        story.ends(StepLost("broken_stream", "reset"))
        story.fires()
    story.ends(StepLost("broken_stream", "reset"))
    assert len(story.said(StepStarted)) == MAX_ATTEMPTS
    assert story.said(TurnFinished) == [TurnFinished("unavailable", "broken_stream: reset")]


@pytest.mark.parametrize("kind", ["too_long", "refused", "unauthorised", "not_found", "bad_request"])
def test_what_can_not_work_later_fails_the_turn_at_once(kind) -> None:
    story = asked()
    story.ends(StepFailed(kind, 400, "no"))
    assert len(story.said(StepStarted)) == 1
    assert story.said(TurnFinished) == [TurnFinished("failed", f"{kind}: no (HTTP 400)")]


def test_an_answer_that_made_no_sense_is_asked_for_once_more() -> None:
    story = asked()
    story.ends(StepFailed("bad_answer", message="not json"))
    story.fires()
    story.ends(StepFailed("bad_answer", message="not json"))
    assert [event.attempt for event in story.said(StepStarted)] == [1, 2]
    assert story.said(TurnFinished) == [TurnFinished("failed", "bad_answer: not json")]


def test_a_new_step_has_all_its_attempts() -> None:
    story = asked()
    story.ends(StepLost("stalled"))
    story.fires()
    story.answers("todo")
    story.looks(0)
    story.finishes(0)
    assert [event.attempt for event in story.said(StepStarted)] == [1, 2, 1]


def test_a_later_attempt_has_a_text_of_its_own() -> None:
    story = asked()
    story.tell(LEAD, StepPartial("half a tho"), op="lead.1")
    story.ends(StepLost("broken_stream"))
    story.fires()
    assert story.agent().turn.step.partial == ""
    story.answers(text="a whole one")
    assert (story.agent().last_text, story.agent().pending) == ("a whole one", (AssistantMessage("a whole one"),))


def test_nothing_of_a_broken_stream_is_kept_as_a_call() -> None:
    story = asked()
    story.ends(StepLost("broken_stream", partial_bytes=300))
    assert story.agent().turn.calls == ()
    assert story.agent().pending == ()
