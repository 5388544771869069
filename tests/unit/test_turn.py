"""Turns: from a prompt until nothing is left to do; prompts that come meanwhile, and interrupts."""

from __future__ import annotations

from pieria.core.commands import GoOn, Rejected, accept
from pieria.core.effects import CallModel, Examine, Stop, Write
from pieria.core.events.calls import ApprovalAnswered, CallExamined, CallRefused, ToolInterrupted
from pieria.core.events.model import StepFailed, StepFinished, StepLost, StepPartial, StepStarted
from pieria.core.events.turns import NudgeGiven, PromptSubmitted, TimerFired, TurnFinished, TurnStarted
from pieria.core.record import Draft
from pieria.core.state import SENT_BLOCK, Input, Tokens
from pieria.core.turn import NUDGES, sent_by
from pieria.core.values import AssistantMessage, Examined, SystemMessage, ToolMessage, Usage, UserMessage
from tests.unit.story import LEAD, OUTSIDE, Story


def test_without_a_prompt_nothing_is_decided() -> None:
    assert Story().decided() == ()


def test_a_prompt_opens_a_turn_that_names_its_inputs() -> None:
    story = Story()
    assert story.prompt("one") == ()
    assert story.said(TurnStarted) == [TurnStarted((2,))]
    assert [type(record.data).__name__ for record in story.records[2:]] == [
        "PromptSubmitted", "TurnStarted", "StepStarted",
    ]  # fmt: skip


def test_a_prompt_for_nobody_changes_nothing() -> None:
    story = Story()
    before = story.state.agents
    story.prompt("hello", to="nobody")
    assert story.state.agents == before


def test_while_the_model_thinks_nothing_is_decided() -> None:
    story = Story()
    story.prompt()
    assert story.decided() == ()
    assert story.agent().turn.step.phase == "open"


def test_an_answer_without_calls_ends_the_turn() -> None:
    story = Story()
    story.prompt()
    assert story.answers(text="all done") == ()
    assert story.said(TurnFinished) == [TurnFinished("done")]
    assert (story.agent().turn, story.agent().last_end, story.agent().last_text) == (None, "done", "all done")


def test_an_answer_with_calls_makes_the_turn_look_at_each_of_them() -> None:
    story = Story()
    story.prompt()
    assert story.answers("read", "read") == (Examine(LEAD, "lead.1.0"), Examine(LEAD, "lead.1.1"))


def test_after_its_results_the_model_is_asked_again() -> None:
    story = Story()
    story.prompt()
    story.answers("read")
    story.looks(0)
    story.finishes(0, "content")
    assert len(story.said(StepStarted)) == 2
    assert story.agent().turn.calls == ()
    assert story.agent().turn.steps == 2


def test_a_prompt_during_a_turn_enters_with_the_next_step() -> None:
    story = Story()
    story.prompt("first")
    story.answers("read")
    story.looks(0)
    story.prompt("second")
    assert [entry.text for entry in story.agent().unread] == ["second"]
    story.finishes(0, "content")
    assert story.agent().unread == ()
    assert story.sent[LEAD][-2:] == [ToolMessage("lead.1.0", "read", "content"), UserMessage("second")]
    assert len(story.said(TurnStarted)) == 1


def test_a_prompt_during_the_last_answer_opens_a_turn_of_its_own() -> None:
    story = Story()
    story.prompt("first")
    story.prompt("second")
    story.answers(text="done")
    assert [event.inputs for event in story.said(TurnStarted)] == [(2,), (5,)]
    assert story.sent[LEAD][-2:] == [AssistantMessage("done"), UserMessage("second")]


def test_prompts_keep_their_order_and_are_sent_once() -> None:
    story = Story()
    for text in ("a", "b", "c"):
        story.prompt(text)
    assert story.agent().unread == (Input(5, "b"), Input(6, "c"))
    story.answers(text="done")
    story.answers(text="done too")
    said = [entry.text for entry in story.sent[LEAD] if isinstance(entry, UserMessage)]
    assert said == ["a", "b", "c"]


def test_the_first_request_starts_with_the_systems_words_and_later_ones_do_not() -> None:
    story = Story()
    story.prompt("one")
    story.answers(text="done")
    story.prompt("two")
    assert story.sent[LEAD] == [
        SystemMessage(("You are lead.",)), UserMessage("one"), AssistantMessage("done"), UserMessage("two"),
    ]  # fmt: skip


def test_what_a_turn_sent_stays_with_it() -> None:
    story = Story()
    story.prompt("one")
    story.answers("todo")
    story.looks(0)
    story.finishes(0, "noted")
    story.answers(text="done")
    (turn,) = story.agent().turns
    assert turn.sent[0] == (UserMessage("one"),)
    assert [type(message).__name__ for message in turn.sent[1]] == ["AssistantMessage", "ToolMessage"]
    assert (turn.steps, turn.calls) == (2, ())


def test_a_long_turn_keeps_all_that_it_sent_in_order() -> None:
    story = Story()
    story.prompt()
    for _ in range(2 * SENT_BLOCK + 3):
        story.answers("todo")
        story.looks(0)
        story.finishes(0)
    turn = story.agent().turn
    assert turn.steps == 2 * SENT_BLOCK + 4
    assert list(sent_by(turn)) == story.sent[LEAD][1:]
    assert (len(turn.sent_before), len(turn.sent)) == (2, 4)


def test_what_the_harness_says_is_sent_once() -> None:
    story = Story()
    story.prompt()
    story.ends(StepFinished(""))
    for _ in range(2):
        story.answers("todo")
        story.looks(0)
        story.finishes(0)
    assert [entry.label for entry in story.sent[LEAD] if isinstance(entry, UserMessage)] == ["", "empty"]


def test_partial_text_is_shown_and_never_sent() -> None:
    story = Story()
    story.prompt()
    op = story.agent().turn.step.op
    story.tell(LEAD, StepPartial("I thi"), op=op)
    story.tell(LEAD, StepPartial("nk"), op=op)
    assert story.agent().turn.step.partial == "I think"
    story.ends(StepLost("broken_stream"))
    assert story.agent().turn.step.partial == ""
    story.fires()
    story.answers(text="done")
    story.prompt("more")
    assert "I think" not in str(story.sent[LEAD])


def test_tokens_are_counted_as_told_and_unknown_ones_as_unknown() -> None:
    story = Story()
    story.prompt()
    story.answers("todo", usage=Usage(10, 5, 3))
    story.looks(0)
    story.finishes(0)
    story.answers("todo", usage=Usage(output=7))
    story.looks(0)
    story.finishes(0)
    story.answers(text="x" * 40)
    assert story.agent().tokens == Tokens(10, 5, 3, unknown=2)
    assert story.state.tokens == 15 + 7 + 10


def test_an_outcome_of_another_operation_changes_no_step() -> None:
    story = Story()
    story.prompt()
    before = story.agent()
    for event in (StepFinished("late"), StepLost("stalled"), StepPartial("x")):
        story.tell(LEAD, event, op="lead.99")
        assert story.agent() == before


# --- interrupts ---------------------------------------------------------------------------------------------------


def test_an_interrupt_stops_the_model_call_and_then_ends_the_turn() -> None:
    story = Story()
    story.prompt()
    op = story.agent().turn.step.op
    assert story.interrupts() == (Stop(LEAD, op, "interrupted", 5),)
    assert story.ends(StepLost("interrupted", partial_bytes=3)) == ()
    assert story.said(TurnFinished) == [TurnFinished("interrupted")]
    assert story.agent().stop is None


def test_a_step_that_the_person_interrupted_is_never_tried_again() -> None:
    story = Story()
    story.prompt()
    story.interrupts()
    story.ends(StepLost("interrupted"))
    story.prompt("something else")
    assert [event.attempt for event in story.said(StepStarted)] == [1, 1]


def test_after_an_interrupt_a_step_lost_for_any_reason_is_not_tried_again() -> None:
    for reason in ("crash", "broken_stream", "capped"):
        story = Story()
        story.prompt()
        story.interrupts()
        story.ends(StepLost(reason))
        assert len(story.said(StepStarted)) == 1
        assert story.said(TurnFinished) == [TurnFinished("interrupted")]


def test_an_answer_that_wins_the_race_against_an_interrupt_runs_none_of_its_calls() -> None:
    story = Story()
    story.prompt()
    story.interrupts()
    story.answers("shell", "read")
    refused = story.said(CallRefused)
    assert [(event.call, event.by) for event in refused] == [("lead.1.0", "stop"), ("lead.1.1", "stop")]
    assert story.said(TurnFinished) == [TurnFinished("interrupted")]
    assert len(story.agent().pending) == 3


def test_an_interrupt_stops_running_calls_and_closes_the_others() -> None:
    story = Story()
    story.prompt()
    story.answers("read", "shell", "read", "edit")
    story.looks(0)
    story.looks(1)
    story.tell(LEAD, CallExamined("lead.1.2", Examined("read", "x")))
    assert story.interrupts() == (Stop(LEAD, "lead.4", "interrupted", 11),)
    assert [entry.phase for entry in story.agent().turn.calls] == ["running", "closed", "closed", "closed"]
    assert [event.answer for event in story.said(ApprovalAnswered)] == ["void"]
    assert {event.by for event in story.said(CallRefused)} == {"stop"}
    entry = story.call(0)
    story.tell(LEAD, ToolInterrupted(entry.call.id, "stopped", "cut off"), op=entry.op)
    story.settle()
    assert story.said(TurnFinished) == [TurnFinished("interrupted")]
    assert [message.call for message in story.agent().pending[1:]] == [f"lead.1.{i}" for i in range(4)]


def test_an_interrupt_ends_the_wait_for_another_attempt() -> None:
    story = Story()
    story.prompt()
    story.ends(StepLost("stalled"))
    timer = story.agent().turn.timer
    assert timer in story.state.timers
    story.interrupts()
    assert [record.op for record in story.records if isinstance(record.data, TimerFired)] == [timer]
    assert story.said(TurnFinished) == [TurnFinished("interrupted")]
    assert story.state.timers == {}


def test_an_interrupt_meant_for_one_agent_leaves_the_others_at_work() -> None:
    story = Story("a", "b")
    story.prompt(to="a")
    story.prompt(to="b")
    effects = story.interrupts("a")
    assert [effect.agent for effect in effects] == ["a"]
    assert story.agent("b").stop is None


def test_an_interrupt_for_everyone_stops_every_turn_and_marks_no_idle_agent() -> None:
    story = Story("a", "b", "c")
    story.prompt(to="a")
    story.prompt(to="b")
    assert [effect.agent for effect in story.interrupts("")] == ["a", "b"]
    assert story.agent("c").stop is None


def test_a_prompt_that_waited_through_an_interrupt_opens_the_next_turn() -> None:
    story = Story()
    story.prompt("one")
    story.prompt("two")
    story.interrupts()
    story.ends(StepLost("interrupted"))
    assert [event.reason for event in story.said(TurnFinished)] == ["interrupted"]
    assert story.sent[LEAD][1:] == [UserMessage("one"), UserMessage("two")]


def test_an_interrupt_while_a_call_is_held_says_so_and_asks_no_more() -> None:
    story = Story()
    story.prompt()
    story.answers("read")
    story.looks(0, paths=(OUTSIDE,))
    assert len(story.state.approvals) == 1
    story.interrupts()
    assert story.state.approvals == {}
    assert story.said(CallRefused)[0].text == "Not run: the person interrupted the turn."


# --- going on ---------------------------------------------------------------------------------------------------------


def goes_on(story: Story) -> None:
    draft = accept(story.state, GoOn(LEAD))
    assert draft == Draft(LEAD, TurnStarted(()))
    story.tell(LEAD, draft.event)
    story.settle()


def test_a_turn_that_failed_is_taken_up_with_the_same_words() -> None:
    story = Story()
    story.prompt("one")
    story.ends(StepFailed("unauthorised"))
    sent = list(story.sent[LEAD])
    goes_on(story)
    assert story.sent[LEAD] == sent
    assert [event.attempt for event in story.said(StepStarted)] == [1, 1]


def test_after_an_answer_that_an_interrupt_met_the_model_is_told_to_go_on() -> None:
    story = Story()
    story.prompt()
    story.interrupts()
    story.answers(text="as I was say")
    goes_on(story)
    assert story.sent[LEAD][-2:] == [AssistantMessage("as I was say"), UserMessage(NUDGES["go_on"], label="go_on")]


def test_after_results_the_model_goes_on_without_a_word() -> None:
    story = Story()
    story.prompt()
    story.answers("read")
    story.interrupts()
    goes_on(story)
    assert story.said(NudgeGiven) == []
    assert isinstance(story.sent[LEAD][-1], ToolMessage)


def test_there_is_nothing_to_take_up_in_a_turn_that_runs_or_ended_well_or_never_was() -> None:
    story = Story()
    assert accept(story.state, GoOn(LEAD)) == Rejected("'lead' left nothing unfinished")
    story.prompt()
    assert isinstance(accept(story.state, GoOn(LEAD)), Rejected)
    story.answers(text="done")
    assert isinstance(accept(story.state, GoOn(LEAD)), Rejected)
    assert isinstance(accept(story.state, GoOn("nobody")), Rejected)


# --- several agents -----------------------------------------------------------------------------------------------


def test_agents_work_side_by_side_and_one_failing_leaves_the_other_alone() -> None:
    story = Story("a", "b")
    story.prompt(to="a")
    story.prompt(to="b")
    story.answers("read", id="a")
    story.ends(StepLost("interrupted"), id="b")
    assert story.agent("b").last_end == "unavailable"
    assert story.decided() == (Examine("a", "a.1.0"),)


def test_results_go_to_the_agent_that_asked() -> None:
    story = Story("a", "b")
    for id in ("a", "b"):
        story.prompt(to=id)
        story.answers("read", id=id)
        story.looks(0, id=id)
    story.finishes(0, "of b", id="b")
    story.finishes(0, "of a", id="a")
    assert [(id, story.sent[id][-1].text) for id in ("a", "b")] == [("a", "of a"), ("b", "of b")]


def test_all_that_can_start_starts_at_once() -> None:
    story = Story("a", "b")
    for id in ("a", "b"):
        story.tell("person", PromptSubmitted(id, "go"))
    assert story.decided() == (
        Write(Draft("a", TurnStarted((3,)))), Write(Draft("b", TurnStarted((4,)))),
    )  # fmt: skip
    for effect in story.decided():
        story.tell(effect.draft.agent, effect.draft.event)
    assert story.decided() == (CallModel("a", 1), CallModel("b", 1))
