"""Caps on steps, tokens and time: for the whole team, and counted anew under new settings."""

from __future__ import annotations

import pytest

from pieria.core import clock
from pieria.core.effects import Examine, SetTimer, Stop, Write
from pieria.core.events.calls import ToolInterrupted, ToolStarted
from pieria.core.events.model import StepFailed, StepLost, StepStarted
from pieria.core.events.session import SettingsApplied
from pieria.core.events.turns import PromptSubmitted, TimerFired, TimerSet, TurnFinished, TurnStarted
from pieria.core.record import Draft
from pieria.core.values import Usage
from pieria.core.view import is_resting, outcome
from tests.unit.story import LEAD, START, Story

DEADLINE = clock.later(START, 3600.0)


def capped(*agents: str, **caps) -> Story:
    story = Story(*agents, settings=SettingsApplied("edits", **caps))
    for id in agents or (LEAD,):
        story.prompt(to=id)
    return story


def works(story: Story, id: str = LEAD, usage: Usage | None = None) -> None:
    story.answers("todo", id=id, usage=usage)
    story.looks(0, id=id)
    story.finishes(0, id=id)


# --- steps ------------------------------------------------------------------------------------------------------------


def test_no_more_steps_than_the_cap_begin_and_the_turn_rests_as_it_is() -> None:
    story = capped(max_steps=2)
    works(story)
    works(story)
    assert len(story.said(StepStarted)) == 2
    assert story.said(TurnFinished) == []
    assert story.decided() == ()
    assert is_resting(story.state)
    assert outcome(story.state).status == "capped"
    assert outcome(story.state).reason == "the cap of 2 steps was reached"


def test_the_last_allowed_step_may_end_the_turn() -> None:
    story = capped(max_steps=1)
    story.answers(text="done")
    assert outcome(story.state).status == "finished"


def test_several_agents_are_capped_as_if_all_that_is_decided_started() -> None:
    story = Story("a", "b", "c", settings=SettingsApplied("edits", max_steps=2))
    for id in ("a", "b", "c"):
        story.tell("person", PromptSubmitted(id, "go"))
    for effect in story.decided():
        story.tell(effect.draft.agent, effect.draft.event)
    assert [effect.agent for effect in story.decided()] == ["a", "b"]
    story.settle()
    assert len(story.said(StepStarted)) == 2


def test_a_cap_of_no_steps_begins_none() -> None:
    story = capped(max_steps=0)
    assert story.said(StepStarted) == []
    assert outcome(story.state).status == "capped"


@pytest.mark.parametrize("lost", [StepLost("crash"), StepLost("stalled"), StepFailed("overloaded", 503)])
def test_another_attempt_is_no_new_step_for_the_cap(lost) -> None:
    story = capped(max_steps=1)
    story.ends(lost)
    if story.state.timers:
        assert not is_resting(story.state)
        story.fires()
    assert [event.attempt for event in story.said(StepStarted)] == [1, 2]
    story.answers(text="done")
    assert outcome(story.state).status == "finished"


def test_new_settings_count_anew_and_wake_who_was_capped() -> None:
    story = capped(max_steps=1)
    works(story)
    story.applies(SettingsApplied("edits", max_steps=1))
    assert len(story.said(StepStarted)) == 2
    works(story)
    assert len(story.said(StepStarted)) == 2


def test_a_capped_turn_ends_when_the_person_interrupts_it() -> None:
    story = capped(max_steps=1)
    works(story)
    story.interrupts()
    assert story.said(TurnFinished) == [TurnFinished("interrupted")]


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_when_the_tokens_are_used_up_no_step_begins() -> None:
    story = capped(max_tokens=100)
    works(story, usage=Usage(60, 39))
    assert len(story.said(StepStarted)) == 2
    works(story, usage=Usage(1, 0))
    assert len(story.said(StepStarted)) == 2
    assert outcome(story.state).reason == "the cap of 100 tokens was reached"


def test_tokens_of_all_agents_count_together() -> None:
    story = capped("a", "b", max_tokens=100)
    works(story, "a", Usage(50, 10))
    works(story, "b", Usage(40, 10))
    assert [record.agent for record in story.records if isinstance(record.data, StepStarted)] == ["a", "b", "a"]


def test_when_the_tokens_are_used_up_nothing_is_tried_again_either() -> None:
    story = capped("a", "b", max_tokens=100)
    works(story, "a", Usage(100, 10))
    story.ends(StepLost("crash"), "b")
    assert len(story.said(StepStarted)) == 2
    assert is_resting(story.state)
    story.applies(SettingsApplied("edits"))
    assert [event.attempt for event in story.said(StepStarted)] == [1, 1, 1, 2]


def test_a_wait_after_which_nothing_may_begin_keeps_nobody_waiting() -> None:
    story = capped("a", "b", max_tokens=100)
    story.ends(StepLost("stalled"), "b")
    assert not is_resting(story.state)
    works(story, "a", Usage(100, 10))
    assert len(story.state.timers) == 1
    assert is_resting(story.state)


def test_new_settings_count_tokens_anew() -> None:
    story = capped(max_tokens=100)
    works(story, usage=Usage(100, 10))
    story.applies(SettingsApplied("edits", max_tokens=100))
    assert len(story.said(StepStarted)) == 2


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_deadline_has_one_timer_of_the_session_itself() -> None:
    story = Story(settings=SettingsApplied("edits", deadline=DEADLINE))
    assert story.decided() == (SetTimer("session", "deadline", DEADLINE),)
    story.settle()
    assert story.decided() == ()
    assert [timer.purpose for timer in story.state.timers.values()] == ["deadline"]
    assert is_resting(story.state)


def test_when_time_is_up_what_runs_is_stopped_and_nothing_begins() -> None:
    story = capped("a", "b", "c", deadline=DEADLINE)
    story.answers("read", "read", id="b")
    story.looks(0, id="b")
    story.answers(text="done", id="c")
    effects = story.fires()
    fired = story.state.seq
    assert effects == (
        Stop("a", story.agent("a").turn.step.op, "capped", fired), Stop("b", story.call(0, "b").op, "capped", fired),
    )  # fmt: skip
    story.ends(StepLost("capped"), "a")
    entry = story.call(0, "b")
    story.tell("b", ToolInterrupted(entry.call.id, "stopped", "cut"), op=entry.op)
    story.prompt("more", to="c")
    assert story.decided() == ()
    assert story.call(1, "b").phase == "asked"
    assert len(story.said(TurnStarted)) == 3
    assert outcome(story.state).status == "capped"
    assert outcome(story.state).reason == "the time limit was reached"


def test_more_time_takes_up_what_was_stopped() -> None:
    story = capped("a", "b", deadline=DEADLINE)
    story.answers("read", "read", id="b")
    story.looks(0, id="b")
    story.fires()
    story.ends(StepLost("capped"), "a")
    entry = story.call(0, "b")
    story.tell("b", ToolInterrupted(entry.call.id, "stopped", "cut"), op=entry.op)
    assert story.applies(SettingsApplied("edits")) == (Examine("b", "b.1.1"),)
    assert [event.attempt for event in story.said(StepStarted)] == [1, 1, 2]
    assert story.agent("a").stop is None


def test_time_that_is_up_does_not_lift_the_persons_interrupt() -> None:
    story = capped(deadline=DEADLINE)
    story.interrupts()
    story.fires()
    assert story.agent().stop.reason == "interrupted"
    story.ends(StepLost("capped"))
    assert story.said(TurnFinished) == [TurnFinished("interrupted")]


def test_new_settings_do_not_lift_the_persons_interrupt() -> None:
    story = capped()
    story.interrupts()
    story.applies(SettingsApplied("full"))
    assert story.agent().stop.reason == "interrupted"


def test_a_stopped_wait_for_another_attempt_goes_on_when_there_is_time_again() -> None:
    story = capped(deadline=DEADLINE)
    story.ends(StepLost("stalled"))
    deadline, retry = story.state.timers.values()
    story.tell("session", TimerFired(), op=deadline.op)
    story.settle()
    assert list(story.state.timers) == [retry.op]
    story.fires()
    assert len(story.said(StepStarted)) == 1
    story.applies(SettingsApplied("edits"))
    assert [event.attempt for event in story.said(StepStarted)] == [1, 2]


def test_another_deadline_ends_the_timer_of_the_one_before_and_stops_nobody() -> None:
    story = capped(deadline=DEADLINE)
    (old,) = story.state.timers
    later = clock.later(DEADLINE, 60.0)
    story.tell("session", SettingsApplied("edits", deadline=later))
    assert story.decided() == (
        Write(Draft("session", TimerFired(), op=old)), SetTimer("session", "deadline", later),
    )  # fmt: skip
    story.settle()
    assert [timer.deadline for timer in story.state.timers.values()] == [later]
    assert not story.state.out_of_time
    assert story.agent().stop is None


def test_settings_without_a_deadline_end_its_timer() -> None:
    story = capped(deadline=DEADLINE)
    story.applies(SettingsApplied("edits"))
    assert story.state.timers == {}
    assert not story.state.out_of_time


def test_the_same_deadline_again_keeps_its_timer() -> None:
    story = capped(deadline=DEADLINE)
    story.applies(SettingsApplied("plan", deadline=DEADLINE))
    assert len(story.said(TimerSet)) == 1


def test_a_deadline_that_has_passed_is_waited_for_once_more_and_stops_all_again() -> None:
    story = capped(deadline=DEADLINE)
    story.fires()
    story.ends(StepLost("capped"))
    story.applies(SettingsApplied("edits", deadline=DEADLINE))
    assert len(story.said(TimerSet)) == 2
    story.fires()
    assert story.state.out_of_time


def test_a_timer_that_nobody_set_changes_nothing() -> None:
    story = capped()
    before = story.state.agents
    story.tell(LEAD, TimerFired(), op="lead.99")
    assert story.state.agents == before


def test_nothing_runs_that_was_looked_at_after_time_was_up() -> None:
    story = capped(deadline=DEADLINE)
    story.answers("read")
    story.fires()
    story.looks(0)
    assert story.said(ToolStarted) == []
    story.applies(SettingsApplied("edits"))
    assert len(story.said(ToolStarted)) == 1
