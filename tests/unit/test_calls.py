"""Tool calls: looked at, ruled on, run and closed exactly once; results in the order asked."""

from __future__ import annotations

import pytest

from pieria.core.calls import must_wait
from pieria.core.effects import Examine, StartTool
from pieria.core.events.calls import (
    CallExamined,
    CallRefused,
    Ruling,
    ToolFinished,
    ToolInterrupted,
    ToolSpawned,
    ToolStarted,
)
from pieria.core.events.files import FilesChanged
from pieria.core.events.model import StepFinished, StepStarted
from pieria.core.events.session import SessionOpened, SettingsApplied
from pieria.core.values import (
    AssistantMessage,
    Call,
    Details,
    Examined,
    FileHash,
    Todo,
    ToolMessage,
    UserMessage,
)
from tests.unit.story import LEAD, OUTSIDE, PLACE, Story


def asking(*tools: str) -> Story:
    story = Story()
    story.prompt()
    story.answers(*tools)
    return story


def results(story: Story) -> list[tuple[str, str]]:
    return [(entry.call, entry.text) for entry in story.sent[LEAD] if isinstance(entry, ToolMessage)]


# --- one result for each call, in the order asked -------------------------------------------------------------------


def test_results_reach_the_model_in_the_order_asked_not_in_the_order_done() -> None:
    story = asking("read", "read", "read")
    for position in range(3):
        story.looks(position)
    for position in (2, 0, 1):
        story.finishes(position, f"result {position}")
    assert results(story) == [(f"lead.1.{i}", f"result {i}") for i in range(3)]


def test_the_model_is_not_asked_before_the_last_result_is_there() -> None:
    story = asking("read", "read")
    story.looks(0)
    story.looks(1)
    assert story.finishes(1) == ()
    assert len(story.said(StepStarted)) == 1
    story.finishes(0)
    assert len(story.said(StepStarted)) == 2


def test_refused_failed_and_cut_calls_have_results_like_all_others() -> None:
    story = asking("read", "Read", "shell", "edit")
    story.looks(1, error="There is no tool 'Read'. Did you mean 'read'?")
    story.looks(0)
    story.looks(2)
    story.allows("deny", "use make")
    story.tell(LEAD, ToolInterrupted("lead.1.0", "unknown", "cut off"), op=story.call(0).op)
    story.settle()
    story.looks(3)
    story.finishes(3, "edited")
    assert [text.split(":")[0][:20] for _, text in results(story)] == [
        "cut off", "There is no tool 'Re", "Not run", "edited",
    ]  # fmt: skip


def test_a_refused_call_stays_in_the_context_as_it_was_asked() -> None:
    story = asking("shell")
    story.looks(0)
    story.allows("deny")
    assert story.sent[LEAD][-2] == AssistantMessage("", (Call("lead.1.0", "shell", "{}"),))
    assert isinstance(story.sent[LEAD][-1], ToolMessage)


def test_broken_arguments_stay_as_they_came_and_their_error_is_the_result() -> None:
    story = Story()
    story.prompt()
    story.ends(StepFinished("", (Call("lead.1.0", "edit", '{"a":1,b":2}'),)))
    story.looks(0, error="not JSON: at character 7")
    assert story.sent[LEAD][-2:] == [
        AssistantMessage("", (Call("lead.1.0", "edit", '{"a":1,b":2}'),)),
        ToolMessage("lead.1.0", "edit", "not JSON: at character 7"),
    ]


def test_what_happens_while_calls_run_loses_no_result() -> None:
    story = asking("read", "shell", "read")
    story.looks(0)
    story.prompt("by the way")
    story.applies(SettingsApplied("plan"))
    story.looks(2)
    story.looks(1)
    story.tell("session", FilesChanged((FileHash("/x", None),)))
    story.finishes(2, "two")
    story.finishes(0, "zero")
    assert [call for call, _ in results(story)] == ["lead.1.0", "lead.1.1", "lead.1.2"]
    assert story.sent[LEAD][-1] == UserMessage("by the way")


def test_a_closed_call_is_not_closed_again_nor_opened_anew() -> None:
    story = asking("read", "read")
    story.looks(0)
    story.finishes(0, "first")
    before = story.agent()
    for event in (
        ToolFinished("lead.1.0", "second"), CallRefused("lead.1.0", "stop", "no"),
        CallExamined("lead.1.0", Examined("read", "x")),
        ToolInterrupted("lead.1.0", "unknown", "x"), ToolSpawned("lead.1.0", 1, 1, "b", "j"),
    ):  # fmt: skip
        story.tell(LEAD, event, op="lead.4")
        assert story.agent() == before


def test_after_the_last_result_a_second_one_adds_nothing() -> None:
    story = Story(settings=SettingsApplied("edits", max_steps=1))
    story.prompt()
    story.answers("read")
    story.looks(0)
    story.finishes(0, "first")
    before = story.agent()
    assert len(before.pending) == 2
    story.tell(LEAD, ToolFinished("lead.1.0", "second"), op="lead.4")
    assert story.agent() == before


def test_a_call_that_nobody_asked_for_changes_nothing() -> None:
    story = asking("read")
    before = story.agent()
    story.tell(LEAD, CallRefused("lead.9.9", "stop", "no"))
    assert story.agent() == before


# --- looking and ruling --------------------------------------------------------------------------------------------


def test_nothing_starts_that_was_not_looked_at() -> None:
    story = asking("read")
    assert story.decided() == (Examine(LEAD, "lead.1.0"),)


def test_an_allowed_call_starts_and_cites_what_was_seen_and_why_it_may() -> None:
    story = asking("read")
    story.tell(LEAD, CallExamined("lead.1.0", Examined("read", "a", paths=(PLACE,))))
    assert story.decided() == (
        StartTool(LEAD, "lead.1.0", Ruling("mode", "mode edits: reads inside the workspace")),
    )  # fmt: skip
    story.settle()
    assert story.said(ToolStarted)[0].examined == 6


def test_an_error_in_looking_is_the_result_whatever_the_rules_say() -> None:
    story = asking("shell")
    story.looks(0, error="no such folder")
    assert story.said(CallRefused) == [CallRefused("lead.1.0", "error", "no such folder")]
    assert story.said(ToolStarted) == []


def test_a_denied_call_tells_the_model_what_to_do_instead() -> None:
    story = Story(settings=SettingsApplied("edits", deny=("shell(rm *)",)))
    story.prompt()
    story.answers("shell")
    story.looks(0, words=("rm", "-rf", "x"))
    (refused,) = story.said(CallRefused)
    assert refused.by == "rule"
    assert refused.text.startswith("Not allowed (rule deny shell(rm *)).")


def test_rules_know_the_agents_root() -> None:
    story = Story(settings=SettingsApplied("ask", allow=("edit(src/*)",)))
    story.prompt()
    story.answers("edit")
    story.looks(0)
    assert [event.ruling.by for event in story.said(ToolStarted)] == ["rule"]


def test_what_was_seen_and_not_ruled_on_is_looked_at_again_after_a_restart() -> None:
    story = asking("read", "read")
    story.tell(LEAD, CallExamined("lead.1.0", Examined("read", "a", paths=(PLACE,))))
    story.tell("session", SessionOpened(1, 1, "b", "0"))
    assert story.decided() == (Examine(LEAD, "lead.1.0"), Examine(LEAD, "lead.1.1"))


def test_a_running_call_still_runs_after_a_restart() -> None:
    story = asking("read", "read")
    story.looks(0)
    before = story.call(0)
    story.tell("session", SessionOpened(1, 1, "b", "0"))
    assert story.call(0) == before
    assert story.decided() == (Examine(LEAD, "lead.1.1"),)


def test_a_commands_supervisor_is_known_while_it_runs() -> None:
    story = Story(settings=SettingsApplied("full"))
    story.prompt()
    story.answers("shell")
    story.looks(0)
    spawned = ToolSpawned("lead.1.0", 7, 9, "boot", "job")
    story.tell(LEAD, spawned)
    assert story.call(0).spawned == spawned


# --- order ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access", "earlier", "waits"),
    [
        ("edit", [], False), ("edit", ["note"], False), ("edit", ["read"], True), ("edit", ["shell"], True),
        ("edit", ["edit"], True), ("read", ["edit"], True), ("shell", ["edit"], True), ("read", ["read"], False),
        ("read", ["shell"], False), ("shell", ["shell"], False), ("shell", ["read"], False), ("note", ["edit"], False),
        ("edit", ["note", "read"], True), ("read", ["note", "shell"], False),
    ],
)  # fmt: skip
def test_reads_and_commands_come_before_edits_and_edits_before_all(access, earlier, waits) -> None:
    assert must_wait(access, earlier) is waits


def test_reads_and_commands_run_side_by_side() -> None:
    story = asking("read", "shell", "read", "todo")
    assert [effect.call for effect in story.decided()] == [f"lead.1.{i}" for i in range(4)]


def test_an_edit_waits_for_the_read_before_it_and_holds_the_one_after() -> None:
    story = asking("read", "edit", "read")
    assert story.decided() == (Examine(LEAD, "lead.1.0"),)
    story.looks(0)
    assert story.decided() == ()
    assert story.finishes(0) == (Examine(LEAD, "lead.1.1"),)
    story.looks(1)
    assert story.decided() == ()
    assert story.finishes(1) == (Examine(LEAD, "lead.1.2"),)


def test_two_edits_never_run_at_once() -> None:
    story = asking("edit", "edit")
    assert story.decided() == (Examine(LEAD, "lead.1.0"),)
    story.looks(0)
    assert story.decided() == ()
    assert story.finishes(0) == (Examine(LEAD, "lead.1.1"),)


def test_a_call_that_waits_for_the_person_blocks_no_other() -> None:
    story = asking("edit", "read", "edit")
    assert story.looks(0, paths=(OUTSIDE,)) == (Examine(LEAD, "lead.1.1"),)
    story.looks(1)
    assert story.finishes(1) == (Examine(LEAD, "lead.1.2"),)


def test_a_tool_that_the_agent_does_not_have_waits_for_nothing() -> None:
    story = asking("edit", "Reed")
    assert story.decided() == (Examine(LEAD, "lead.1.0"), Examine(LEAD, "lead.1.1"))


# --- what finished calls leave ---------------------------------------------------------------------------------------


def finished(story: Story, position: int, details: Details) -> None:
    entry = story.call(position)
    story.tell(LEAD, ToolFinished(entry.call.id, "ok", details=details), op=entry.op)
    story.settle()


def test_files_that_a_call_touched_are_known_and_gone_ones_are_not() -> None:
    story = asking("read", "read")
    story.looks(0)
    story.looks(1)
    finished(story, 0, Details(files=(FileHash("/a", "1"), FileHash("/b", "2"))))
    assert story.agent().known == {"/a": "1", "/b": "2"}
    finished(story, 1, Details(files=(FileHash("/a", None), FileHash("/b", "3"))))
    assert story.agent().known == {"/b": "3"}


def test_a_task_list_replaces_the_one_before_and_stays_when_a_call_has_none() -> None:
    story = asking("todo", "todo", "todo")
    for position, todo in enumerate([(Todo("a", "open"),), None, ()]):
        story.looks(position)
        finished(story, position, Details(todo=todo))
        if position == 1:
            assert story.agent().todo == (Todo("a", "open"),)
    assert story.agent().todo == ()


def test_files_changed_by_others_are_told_once_to_those_who_knew_them() -> None:
    story = Story("a", "b")
    for id, path in (("a", "/a"), ("b", "/b")):
        story.prompt(to=id)
        story.answers("read", id=id)
        story.looks(0, id=id)
        entry = story.call(0, id)
        story.tell(id, ToolFinished(entry.call.id, "ok", details=Details(files=(FileHash(path, "1"),))), op=entry.op)
        story.settle()
        story.answers(text="done", id=id)
    changed = FilesChanged((FileHash("/a", "2"), FileHash("/b", "1"), FileHash("/c", "3")))
    story.tell("session", changed)
    story.tell("session", changed)
    text = "These files changed outside of this session; read them again before you rely on them:\n/a (changed)"
    assert story.agent("a").notes == (UserMessage(text, label="files changed"),)
    assert (story.agent("a").known, story.agent("b").known) == ({}, {"/b": "1"})
    assert story.agent("b").notes == ()
    story.prompt("go on", to="a")
    assert story.sent["a"][-2:] == [UserMessage(text, label="files changed"), UserMessage("go on")]


def test_a_file_that_is_gone_is_told_as_gone() -> None:
    story = asking("read")
    story.looks(0)
    finished(story, 0, Details(files=(FileHash("/a", "1"),)))
    story.tell("session", FilesChanged((FileHash("/a", None),)))
    assert story.agent().notes[0].text.endswith("\n/a (gone)")
