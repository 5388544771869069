"""Approvals: a question is state, an answer is for one action and used once, newer settings rule anew."""

from __future__ import annotations

from pieria.core.effects import Examine, Write
from pieria.core.events.calls import ApprovalAnswered, ApprovalRequested, CallRefused, Ruling, ToolStarted
from pieria.core.events.model import StepStarted
from pieria.core.events.session import SessionOpened, SettingsApplied
from pieria.core.record import Draft
from pieria.core.state import Approval
from pieria.core.view import Question, questions
from tests.unit.story import LEAD, Story

ASKED = "mode edits: a command with shell syntax, which no rule can allow"


def held(*tools: str) -> Story:
    """A story in which the first call, a command, waits for the person."""
    story = Story()
    story.prompt()
    story.answers("shell", *tools)
    story.looks(0, action="one")
    return story


def test_a_question_is_bound_to_the_exact_action_and_opens_under_its_own_id() -> None:
    story = held()
    assert story.said(ApprovalRequested) == [ApprovalRequested("lead.1.0", "one", ASKED)]
    assert story.state.approvals == {"lead.4": Approval("lead.4", LEAD, "lead.1.0", "one", ASKED, 7)}
    assert story.call(0).phase == "held"
    assert story.said(ToolStarted) == []
    assert story.decided() == ()


def test_the_view_shows_the_question_with_what_was_seen() -> None:
    story = held()
    facts = story.call(0).facts
    assert facts.command == "a | b"
    assert questions(story.state) == (Question("lead.4", LEAD, "shell", "lead.1.0", ASKED, facts),)


def test_a_question_survives_a_restart_under_the_same_id() -> None:
    story = held()
    before = story.state.approvals
    story.tell("session", SessionOpened(1, 1, "b", "0"))
    assert story.applies(SettingsApplied("edits")) == ()
    assert story.state.approvals == before


def test_an_allowed_call_is_looked_at_again_before_it_starts() -> None:
    story = held()
    assert story.allows() == (Examine(LEAD, "lead.1.0"),)
    assert story.state.approvals == {}
    story.looks(0, action="one")
    assert [event.ruling for event in story.said(ToolStarted)] == [Ruling("approval", "lead.4")]


def test_an_action_that_is_no_longer_the_allowed_one_is_asked_again() -> None:
    story = held()
    story.allows()
    story.looks(0, action="two")
    assert story.said(ToolStarted) == []
    assert story.said(ApprovalRequested)[1] == ApprovalRequested(
        "lead.1.0", "two", "what was approved has changed; asked again"
    )
    story.allows()
    story.looks(0, action="one")
    assert story.said(ToolStarted) == []
    assert len(story.said(ApprovalRequested)) == 3


def test_an_allowed_call_that_can_no_longer_run_says_why() -> None:
    story = held()
    story.allows()
    story.looks(0, action="", error="the folder is gone")
    assert story.said(CallRefused) == [CallRefused("lead.1.0", "error", "the folder is gone")]


def test_leave_for_one_call_is_no_leave_for_the_next_one_like_it() -> None:
    story = held()
    story.allows()
    story.looks(0, action="one")
    story.finishes(0)
    story.answers("shell")
    story.looks(0, action="one")
    assert len(story.said(ApprovalRequested)) == 2
    assert len(story.said(ToolStarted)) == 1


def test_an_answer_to_no_open_question_changes_nothing() -> None:
    story = held()
    before = story.state.agents
    story.tell("person", ApprovalAnswered("allow", "person"), op="lead.99")
    assert story.state.agents == before


def test_a_second_answer_changes_nothing() -> None:
    story = held("read")
    story.allows("deny")
    before = story.state.agents
    story.tell("person", ApprovalAnswered("allow", "person"), op="lead.4")
    assert story.state.agents == before


def test_a_refusal_is_the_result_with_the_persons_words() -> None:
    story = held("read")
    story.allows("deny", "use make instead")
    (refused,) = story.said(CallRefused)
    assert refused == CallRefused(
        "lead.1.0",
        "person",
        "Not run: the person refused this call. They said: use make instead"
        " Do not try it again in another form; ask or go on.",
    )


def test_a_refusal_without_words_puts_none_into_the_persons_mouth() -> None:
    story = held("read")
    story.allows("deny")
    assert story.said(CallRefused)[0].text == (
        "Not run: the person refused this call. Do not try it again in another form; ask or go on."
    )


def test_the_turn_waits_with_an_open_question_while_the_other_calls_go_on() -> None:
    story = held("read")
    story.looks(1)
    story.finishes(1)
    assert len(story.said(StepStarted)) == 1
    assert story.decided() == ()


# --- newer settings ---------------------------------------------------------------------------------------------------


def test_settings_that_still_ask_leave_the_question_open() -> None:
    story = held()
    assert story.applies(SettingsApplied("ask")) == ()
    assert story.said(ApprovalAnswered) == []


def test_settings_that_allow_answer_the_question_in_the_policys_name() -> None:
    story = held()
    story.tell("session", SettingsApplied("full"))
    answer = ApprovalAnswered("allow", "policy", "mode full: commands run uncontained")
    assert story.decided() == (Write(Draft(LEAD, answer, op="lead.4")),)
    assert story.settle() == (Examine(LEAD, "lead.1.0"),)
    story.looks(0, action="one")
    assert len(story.said(ToolStarted)) == 1
    assert story.state.approvals == {}


def test_settings_that_deny_refuse_the_call_in_the_policys_words_not_the_persons() -> None:
    story = held("read")
    assert story.applies(SettingsApplied("plan")) == (Examine(LEAD, "lead.1.0"), Examine(LEAD, "lead.1.1"))
    story.looks(0, action="one")
    (refused,) = story.said(CallRefused)
    assert refused.by == "mode"
    assert refused.text.startswith("Not allowed (mode plan: read only).")
    assert "person" not in refused.text


def test_what_was_allowed_and_has_not_begun_does_not_run_once_settings_deny_it() -> None:
    story = held("read")
    story.allows()
    story.applies(SettingsApplied("plan"))
    story.looks(0, action="one")
    assert story.said(ToolStarted) == []
    assert story.said(CallRefused)[0].by == "mode"


def test_what_was_allowed_and_has_not_begun_runs_under_settings_that_would_ask() -> None:
    story = held()
    story.allows()
    story.applies(SettingsApplied("ask"))
    story.looks(0, action="one")
    assert [event.ruling.by for event in story.said(ToolStarted)] == ["approval"]


def test_a_question_asked_under_the_newest_settings_is_not_ruled_on_again() -> None:
    story = held()
    story.applies(SettingsApplied("ask"))
    story.allows()
    story.looks(0, action="two")
    assert story.call(0).ruled_under == story.state.settings_seq
    assert story.decided() == ()


def test_two_questions_are_answered_one_by_one() -> None:
    story = held("shell")
    story.looks(1, action="two")
    assert list(story.state.approvals) == ["lead.4", "lead.6"]
    story.allows("deny")
    assert list(story.state.approvals) == ["lead.6"]
    assert [entry.phase for entry in story.agent().turn.calls] == ["closed", "held"]
