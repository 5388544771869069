"""Keeps the books beside the core: what every record must obey, told by its own simple means.

It knows no fold: what it checks follows from the order of the records alone, but for the facts a ruling is made on.
"""

from __future__ import annotations

from collections import Counter

from pieria.core import policy, timers
from pieria.core.events.calls import (
    ApprovalAnswered,
    ApprovalRequested,
    CallRefused,
    ToolFinished,
    ToolInterrupted,
    ToolStarted,
)
from pieria.core.events.model import StepFailed, StepFinished, StepLost, StepStarted
from pieria.core.events.session import SettingsApplied
from pieria.core.events.turns import (
    InterruptRequested,
    NudgeGiven,
    PromptSubmitted,
    TimerFired,
    TurnFinished,
    TurnStarted,
)
from pieria.core.record import ROW_OF, Record
from pieria.core.state import State
from pieria.core.turn import MAX_ATTEMPTS, NUDGES
from pieria.core.values import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

CLOSERS = (CallRefused, ToolFinished, ToolInterrupted)


class Book:
    """What has happened so far. `note` is given each record with the state before and after it."""

    def __init__(self) -> None:
        self.open: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.allowed: dict[str, str] = {}
        self.started: set[str] = set()
        self.committed: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()
        self.prompts: dict[str, list[str]] = {}
        self.nudges: dict[str, list[str]] = {}
        self.context: dict[str, list[Message]] = {}
        self.turns: dict[str, int] = {}
        self.halted: set[str] = set()
        self.failed_attempt: dict[str, tuple[int, str]] = {}
        self.request: dict[str, str] = {}
        self.steps_under_cap = 0
        self.time_is_up = False

    def note(self, record: Record, before: State, after: State) -> None:
        """Check one record against all that came before it."""
        row = ROW_OF[type(record.data)]
        if row.opens:
            assert record.op is not None
            assert record.op not in self.open, "an operation is opened once"
            self.open[record.op] = row.name
        elif row.closes:
            assert self.open.pop(record.op, None) in row.closes, f"{row.name} closes {record.op}, which it must not"
        note = getattr(self, f"note_{row.name.replace('.', '_')}", None)
        if note is not None:
            note(record, record.data, before, after)

    # --- turns and steps ------------------------------------------------------------------------------------------

    def note_prompt_submitted(self, record: Record, data: PromptSubmitted, before: State, after: State) -> None:
        self.prompts.setdefault(data.to, []).append(str(data.text))

    def note_nudge_given(self, record: Record, data: NudgeGiven, before: State, after: State) -> None:
        self.nudges.setdefault(record.agent, []).append(data.kind)

    def note_interrupt_requested(self, record: Record, data: InterruptRequested, before: State, after: State) -> None:
        self.halted |= {id for id in self.turns if data.to in ("", id)}

    def note_turn_started(self, record: Record, data: TurnStarted, before: State, after: State) -> None:
        assert record.agent not in self.turns, "one turn at a time"
        unfinished = before.agents[record.agent].last_end not in {"", "done"}
        assert data.inputs or unfinished, "a turn begins with something to do"
        assert not (data.inputs and self.time_is_up)
        self.turns[record.agent] = record.seq

    def note_turn_finished(self, record: Record, data: TurnFinished, before: State, after: State) -> None:
        del self.turns[record.agent]
        agent = before.agents[record.agent]
        assert all(entry.phase == "closed" for entry in agent.turn.calls), "no turn ends with an open call"
        assert (data.reason == "interrupted") == (record.agent in self.halted)
        assert not [op for op, name in self.open.items() if op.startswith(f"{record.agent}.") and name != "timer.set"]
        self.halted.discard(record.agent)
        self.failed_attempt.pop(record.agent, None)

    def note_step_started(self, record: Record, data: StepStarted, before: State, after: State) -> None:
        id = record.agent
        assert id in self.turns
        assert id not in self.halted, "no step after an interrupt"
        assert not self.time_is_up, "no step after the deadline"
        assert [op for op in self.open if op.startswith(f"{id}.")] == [record.op], "a step begins alone"
        if data.attempt > 1:
            assert self.failed_attempt.pop(id) == (data.attempt - 1, self.request[id]), (
                "another attempt, the same bytes"
            )
            assert data.request.sha256 == self.request[id]
            assert data.request.add == ()
        else:
            self.steps_under_cap += 1
            assert id not in self.failed_attempt, "a lost request is sent again or its turn ends"
        cap = before.settings.max_steps
        assert cap is None or self.steps_under_cap <= cap, "the cap on steps holds for all agents together"
        cap = before.settings.max_tokens
        assert cap is None or before.tokens - before.tokens_before < cap, "the cap on tokens holds"
        self.request[id] = data.request.sha256

    def note_request(self, id: str, added: tuple[Message, ...]) -> None:
        """Check the messages that a first attempt adds to an agent's context."""
        context = self.context.setdefault(id, [])
        assert isinstance((*context, *added)[0], SystemMessage), "the system's words stand first"
        assert not any(isinstance(entry, SystemMessage) for entry in context[1:]), "and once"
        context += added
        check_context(context)
        said = [entry.text for entry in context if isinstance(entry, UserMessage) and not entry.label]
        assert said == self.prompts[id], "every prompt is sent once, in order, with the next step"
        nudges = [entry.label for entry in context if isinstance(entry, UserMessage) and entry.label in NUDGES]
        assert nudges == self.nudges.get(id, []), "what the harness says is sent once"

    def note_step_finished(self, record: Record, data: StepFinished, before: State, after: State) -> None:
        turn = after.agents[record.agent].turn
        if turn.step.phase == "answered":
            self.committed.update(str(call.id) for call in data.calls)

    def note_step_lost(self, record: Record, data: StepLost, before: State, after: State) -> None:
        self._not_answered(record, before)

    def note_step_failed(self, record: Record, data: StepFailed, before: State, after: State) -> None:
        self._not_answered(record, before)

    def _not_answered(self, record: Record, before: State) -> None:
        step = before.agents[record.agent].turn.step
        self.failed_attempt[record.agent] = (step.attempt, self.request[record.agent])
        assert step.attempt <= 3 * MAX_ATTEMPTS, "attempts are bounded"

    def note_settings_applied(self, record: Record, data: SettingsApplied, before: State, after: State) -> None:
        self.steps_under_cap, self.time_is_up = 0, False

    def note_timer_fired(self, record: Record, data: TimerFired, before: State, after: State) -> None:
        timer = before.timers[record.op]
        if timer.purpose == "deadline" and timer.deadline == before.settings.deadline:
            assert record.time >= timer.deadline, "time is up when it is, not before"
            self.time_is_up = True

    # --- calls ----------------------------------------------------------------------------------------------------

    def note_approval_requested(self, record: Record, data: ApprovalRequested, before: State, after: State) -> None:
        self.asked[record.op] = data.action
        self.allowed.pop(str(data.call), None)

    def note_approval_answered(self, record: Record, data: ApprovalAnswered, before: State, after: State) -> None:
        question = before.approvals[record.op]
        if data.answer == "allow":
            self.allowed[str(question.call)] = self.asked[record.op]
        if data.by == "policy" and data.answer != "void":
            entry = entry_of(before, question.agent, str(question.call))
            assert ruling_now(before, question.agent, entry).ruling == data.answer

    def note_tool_started(self, record: Record, data: ToolStarted, before: State, after: State) -> None:
        call = str(data.call)
        assert call not in self.started, "no call begins twice"
        assert call not in self.closed
        assert record.agent not in self.halted, "no call begins after an interrupt"
        assert not self.time_is_up, "no call begins after the deadline"
        self.started.add(call)
        entry = entry_of(before, record.agent, call)
        ruled = ruling_now(before, record.agent, entry)
        assert not entry.facts.error
        assert data.examined == entry.examined
        assert ruled.ruling != "deny", "what is denied now does not run, whoever allowed it before"
        if data.ruling.by == "approval":
            assert self.allowed.pop(call) == entry.facts.action, "an approval is for one action, and used once"
        else:
            assert (ruled.ruling, ruled.by, ruled.reason) == ("allow", data.ruling.by, data.ruling.reason)

    def note_call_refused(self, record: Record, data: CallRefused, before: State, after: State) -> None:
        assert str(data.call) not in self.started
        assert data.text
        self._close(record, str(data.call))

    def note_tool_finished(self, record: Record, data: ToolFinished, before: State, after: State) -> None:
        assert str(data.call) in self.started
        self._close(record, str(data.call))

    def note_tool_interrupted(self, record: Record, data: ToolInterrupted, before: State, after: State) -> None:
        assert str(data.call) in self.started
        self._close(record, str(data.call))

    def _close(self, record: Record, call: str) -> None:
        self.closed[call] += 1
        assert self.closed[call] == 1, "a call is closed once"
        assert self.committed[call] == 1, "only a call that the model asked for is closed"

    # --- the end --------------------------------------------------------------------------------------------------

    def check_end(self, state: State) -> None:
        """When nothing outside is awaited any more, everything begun has ended."""
        assert not self.turns, "every turn ends"
        assert not self.open, "every operation is closed"
        assert self.closed == self.committed, "every call is closed once"
        assert not state.approvals
        assert not state.timers
        assert all(agent.turn is None and not agent.unread for agent in state.agents.values())


def entry_of(state: State, id: str, call: str):
    return next(entry for entry in state.agents[id].turn.calls if entry.call.id == call)


def ruling_now(state: State, id: str, entry) -> policy.Ruled:
    return policy.rule(entry.call.name, entry.facts, state.settings, root=state.agents[id].added.root)


def check_context(context: list[Message]) -> None:
    """Check what providers ask for: calls and results in pairs and in order, no empty answer, ours to speak last."""
    due: list[str] = []
    for entry in context:
        if isinstance(entry, ToolMessage):
            assert due, "a result belongs to a call"
            assert due.pop(0) == entry.call, "results stand in the order of the calls"
            continue
        assert not due, "each call has its result before anything else is said"
        if isinstance(entry, AssistantMessage):
            due = [call.id for call in entry.calls]
            assert due or str(entry.text).strip(), "an empty answer is not sent back"
    assert not due, "no request goes out while a result is missing"
    assert not isinstance(context[-1], AssistantMessage), "a request ends with words for the model"


def is_capped(state: State) -> bool:
    return state.out_of_time or timers.steps_left(state) == 0
