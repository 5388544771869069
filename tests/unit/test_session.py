"""The session's own facts, commands, what views say of them, and what stands at the start of a request."""

from __future__ import annotations

import msgspec
import pytest

from pieria.core.commands import AnswerApproval, Configure, Interrupt, Rejected, SubmitPrompt, accept
from pieria.core.context import added_messages, head_spec
from pieria.core.events.calls import ApprovalAnswered
from pieria.core.events.model import StepFailed, StepLost
from pieria.core.events.session import (
    AgentAdded,
    BlobStored,
    Instruction,
    Mark,
    ProjectObserved,
    SessionClosed,
    SessionCreated,
    SessionOpened,
    SettingsApplied,
)
from pieria.core.events.turns import InterruptRequested, PromptSubmitted
from pieria.core.fold import fold
from pieria.core.ports import HeadSpec
from pieria.core.record import FIRST_PREV, BadLine, Draft, Record, UnknownData, decode, encode, is_ignorable, type_name
from pieria.core.state import Agent, State
from pieria.core.values import Details, FileHash, Sampling, SystemMessage, UserMessage
from pieria.core.view import Outcome, answer, is_resting, outcome, questions
from tests.unit.story import LEAD, OUTSIDE, ROOT, START, TOOLS, Story

# --- facts ------------------------------------------------------------------------------------------------------------


def test_the_state_knows_where_it_stands() -> None:
    story = Story()
    record = story.tell("session", Mark())
    assert (story.state.seq, story.state.time, story.state.epoch) == (record.seq, record.time, 1)


def test_records_of_unknown_kind_move_nothing_but_the_position() -> None:
    story = Story()
    before = story.state
    strange = Record(
        seq=9, prev="", durable=0, epoch=4, time="2030", agent="x", n=1, v=1, data=UnknownData("x.y", msgspec.Raw(b"1"))
    )
    after = fold(before, strange)
    assert after == msgspec.structs.replace(before, seq=9, time="2030", epoch=4)


def test_marks_and_blobs_move_nothing_but_the_position() -> None:
    story = Story()
    before = story.state
    story.tell("session", Mark())
    story.tell("session", BlobStored(0, 1, "a", 1, "x"))
    assert msgspec.structs.replace(story.state, seq=before.seq, time=before.time) == before


def test_the_session_knows_its_birth_and_its_end_until_it_is_opened_again() -> None:
    story = Story()
    created = SessionCreated("pieria", 1, "s", 0, "0", 1, 1, "linux", "b", ROOT)
    story.tell("session", created)
    story.tell("session", SessionClosed("finished", 0))
    assert (story.state.session, story.state.closed) == (created, SessionClosed("finished", 0))
    story.tell("session", SessionOpened(1, 1, "b", "0"))
    assert story.state.closed is None


def test_an_agent_that_is_there_already_is_not_added_again() -> None:
    story = Story()
    story.prompt()
    before = story.agent()
    story.tell("session", AgentAdded(LEAD, "other", "p", "m", "s", (), "/"))
    assert story.agent() == before


def test_a_moved_folder_moves_roots_and_known_files_and_is_told() -> None:
    story = Story()
    story.prompt()
    story.answers("read")
    story.looks(0)
    details = Details(files=(FileHash(f"{ROOT}/a", "1"), FileHash(f"{ROOT}ish/b", "2"), FileHash(ROOT, "3")))
    from pieria.core.events.calls import ToolFinished

    story.tell(LEAD, ToolFinished("lead.1.0", "ok", details=details), op=story.call(0).op)
    story.tell("session", SessionOpened(1, 1, "b", "0", moved_to="/srv/app"))
    agent = story.agent()
    assert agent.added.root == "/srv/app"
    assert agent.known == {"/srv/app/a": "1", f"{ROOT}ish/b": "2", "/srv/app": "3"}
    assert agent.notes == (
        UserMessage(f"The project's folder was moved from {ROOT} to /srv/app.", label="folder moved"),
    )  # fmt: skip


# --- the start of a request -------------------------------------------------------------------------------------------


def test_the_project_stands_in_the_first_request_with_its_instructions() -> None:
    story = Story()
    story.tell("session", ProjectObserved(ROOT, "facts", (Instruction("AGENTS.md", "be kind"), Instruction("b", "x"))))
    story.tell("person", PromptSubmitted(LEAD, "hi"))
    assert added_messages(story.state, story.agent()) == (
        SystemMessage(
            (
                "You are lead.", "facts", "Instructions of this project, from AGENTS.md:", "be kind",
                "Instructions of this project, from b:", "x",
            )
        ),
        UserMessage("hi"),
    )  # fmt: skip


def test_a_project_seen_later_does_not_change_what_was_sent() -> None:
    story = Story()
    story.prompt("one")
    story.tell("session", ProjectObserved(ROOT, "facts"))
    story.answers(text="done")
    story.prompt("two")
    assert [type(entry) for entry in story.sent[LEAD]].count(SystemMessage) == 1


def test_the_head_of_a_request_is_the_agents_own() -> None:
    agent = Agent(AgentAdded(LEAD, "lead", "p", "big", "s", TOOLS, ROOT, Sampling(0.5), "key", 99))
    assert head_spec(agent) == HeadSpec("big", TOOLS, Sampling(0.5), "key", 99)


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_prompt_becomes_a_fact_of_the_person() -> None:
    story = Story()
    assert accept(story.state, SubmitPrompt(LEAD, "hi")) == Draft("person", PromptSubmitted(LEAD, "hi"))


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_prompt_is_rejected(text) -> None:
    assert accept(Story().state, SubmitPrompt(LEAD, text)) == Rejected("the prompt is empty", "say what to do")


def test_a_prompt_for_nobody_is_rejected_with_who_is_there() -> None:
    rejected = accept(Story("a", "b").state, SubmitPrompt("c", "hi"))
    assert rejected == Rejected("there is no agent 'c'", "agents here: a, b")
    assert accept(State(), SubmitPrompt("c", "hi")) == Rejected("there is no agent 'c'", "agents here: none")


def test_an_answer_needs_an_open_question() -> None:
    story = Story()
    assert accept(story.state, AnswerApproval("lead.4", "allow")) == Rejected(
        "no question with the id 'lead.4' is open", "open questions: none"
    )
    story.prompt()
    story.answers("shell")
    story.looks(0)
    expected = Draft("person", ApprovalAnswered("deny", "person", "no"), op="lead.4")
    assert accept(story.state, AnswerApproval("lead.4", "deny", "no")) == expected


def test_an_interrupt_reaches_one_known_agent_or_all() -> None:
    state = Story().state
    assert accept(state, Interrupt("", "why")) == Draft("person", InterruptRequested("", "why"))
    assert accept(state, Interrupt(LEAD, "why")) == Draft("person", InterruptRequested(LEAD, "why"))
    assert accept(state, Interrupt("nobody")) == Rejected("there is no agent 'nobody'", f"agents here: {LEAD}")


def test_a_question_is_answered_with_allow_or_deny() -> None:
    story = Story()
    story.prompt()
    story.answers("shell")
    story.looks(0)
    answer = accept(story.state, AnswerApproval("lead.4", "perhaps"))
    assert answer == Rejected("'perhaps' is no answer to a question", "allow or deny")


@pytest.mark.parametrize("id", ["person", "session", "", "a/b", 'a"b', "A", "ä", "-a", "a" * 41])
def test_an_agents_id_is_plain_and_not_reserved(id: str) -> None:
    added = AgentAdded(id, "lead", "p", "m", "s", (), ROOT)
    assert isinstance(accept(State(), Configure(added)), Rejected)


def test_an_agents_id_is_taken_once() -> None:
    story = Story()
    again = AgentAdded(LEAD, "lead", "p", "m", "s", (), ROOT)
    assert accept(story.state, Configure(again)) == Rejected("there is an agent 'lead' already")
    new = AgentAdded("scout", "scout", "p", "m", "s", (), ROOT)
    assert accept(story.state, Configure(new)) == Draft("session", new)


# --- views ------------------------------------------------------------------------------------------------------------


def test_a_session_without_agents_has_failed() -> None:
    assert outcome(State()) == Outcome("failed", 1, "the session has no agent")
    assert (answer(State()), questions(State()), is_resting(State())) == ("", (), True)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (StepFailed("bad_request", 400, "no"), Outcome("failed", 1, "bad_request: no (HTTP 400)")),
        (
            StepFailed("overloaded", 503, "busy", retry_after_s=9e9),
            Outcome("unavailable", 75, "overloaded: busy (HTTP 503)"),
        ),
    ],
)
def test_how_the_last_turn_ended_is_the_outcome(event, expected) -> None:
    story = Story()
    story.prompt()
    story.ends(event)
    assert outcome(story.state) == expected


def test_a_finished_turn_is_a_finished_run_and_its_last_words_the_answer() -> None:
    story = Story("a", "b")
    story.prompt(to="a")
    story.answers(text="all done", id="a")
    assert outcome(story.state) == Outcome("finished", 0)
    assert answer(story.state) == "all done"


def test_an_interrupted_turn_is_an_interrupted_run() -> None:
    story = Story()
    story.prompt()
    story.interrupts()
    story.ends(StepLost("interrupted"))
    assert outcome(story.state) == Outcome("interrupted", 130)


def test_a_new_turn_forgets_how_the_last_one_ended() -> None:
    story = Story()
    story.prompt()
    story.ends(StepFailed("bad_request"))
    story.prompt()
    assert (story.agent().last_end, story.agent().last_detail) == ("", "")


def test_open_questions_make_a_run_refused() -> None:
    story = Story()
    story.prompt()
    story.answers("shell", "read")
    story.looks(0)
    assert outcome(story.state) == Outcome("refused", 3, "1 approval open")
    story.looks(1, paths=(OUTSIDE,))
    assert outcome(story.state) == Outcome("refused", 3, "2 approvals open")


def test_nothing_rests_while_the_model_thinks_or_a_call_runs_or_a_retry_waits() -> None:
    story = Story()
    assert is_resting(story.state)
    story.prompt()
    assert not is_resting(story.state)
    story.answers("read")
    assert not is_resting(story.state)
    story.looks(0)
    assert not is_resting(story.state)
    story.finishes(0)
    story.ends(StepLost("stalled"))
    assert not is_resting(story.state)
    story.fires()
    story.answers(text="done")
    assert is_resting(story.state)


def test_a_run_that_waits_for_the_person_rests() -> None:
    story = Story()
    story.prompt()
    story.answers("shell")
    story.looks(0)
    assert is_resting(story.state)


# --- lines ------------------------------------------------------------------------------------------------------------


def line(event, *, agent: str = "lead", op: str | None = None) -> tuple[Record, bytes]:
    return encode(Draft(agent, event, op=op), seq=3, prev=FIRST_PREV, durable=2, epoch=1, time=START, n=7)


def test_a_line_is_what_the_format_says() -> None:
    record, data = line(PromptSubmitted(LEAD, "h\u00e9\n"))
    assert (
        data
        == (
            '{"seq":3,"prev":"00000000000000000000000000000000","durable":2,"epoch":1,'
            f'"time":"{START}","agent":"lead","n":7,"type":"prompt.submitted","v":1,'
            f'"data":{{"to":"lead","text":"h\u00e9\\n"}},"hash":"{record.hash}"}}\n'
        ).encode()
    )
    assert decode(data) == record


def test_an_opener_gets_its_id_from_its_place() -> None:
    from pieria.core.events.turns import TimerSet

    assert line(TimerSet("retry", START))[0].op == "lead.7"
    assert line(PromptSubmitted(LEAD, "x"))[0].op is None


def test_a_hash_covers_everything_before_it() -> None:
    from hashlib import sha256

    record, data = line(Mark())
    assert record.hash == sha256(data[:-44]).hexdigest()[:32]


def test_an_unknown_kind_is_kept_raw_and_ignorable_only_when_it_says_so() -> None:
    for name, ignorable in (("x.note", True), ("later.thing", False)):
        found = decode(rehashed(line(Mark())[1].replace(b'"type":"mark"', f'"type":"{name}"'.encode())))
        assert (type(found.data), type_name(found), is_ignorable(found)) == (UnknownData, name, ignorable)


def test_a_newer_version_of_a_known_kind_is_kept_raw() -> None:
    found = decode(rehashed(line(Mark())[1].replace(b'"v":1', b'"v":2')))
    assert isinstance(found.data, UnknownData)
    assert (found.v, type_name(found)) == (2, "mark")


def test_a_known_kind_that_lacks_a_field_is_no_record() -> None:
    _, data = line(PromptSubmitted(LEAD, "x"))
    with pytest.raises(BadLine, match=r"prompt\.submitted"):
        decode(rehashed(data.replace(b'"text":"x"', b'"tex":"x"')))


def test_fields_of_a_later_version_are_ignored() -> None:
    record, data = line(Mark())
    found = decode(rehashed(data.replace(b'"data":{}', b'"data":{"new":1}')))
    assert found.data == record.data


@pytest.mark.parametrize("broken", [b"", b"\n", b"{}\n", b"x" * 100 + b"\n", b"\xff" * 60])
def test_bytes_that_are_no_line_are_told_from_one(broken) -> None:
    with pytest.raises(BadLine):
        decode(broken)


def rehashed(data: bytes) -> bytes:
    from pieria.core.record import TAIL_BYTES, chain_hash

    body = data[:-TAIL_BYTES]
    return body + b',"hash":"' + chain_hash(body).encode() + b'"}\n'


def test_settings_have_safe_values_where_none_are_given() -> None:
    assert State().settings == SettingsApplied(mode="edits", allow=(), deny=(), headless=True, trusted=False)
