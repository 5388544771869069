"""Turns and steps: from an input to an agent until it has nothing left to do. Knows no role and no provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from pieria.core import calls, clock
from pieria.core.effects import CallModel, Effect, SetTimer, Stop, Write
from pieria.core.events.model import StepFailed, StepFinished, StepLost, StepPartial, StepStarted
from pieria.core.events.turns import (
    InterruptRequested,
    NudgeGiven,
    PromptSubmitted,
    TimerFired,
    TurnFinished,
    TurnStarted,
)
from pieria.core.record import Draft, Record
from pieria.core.state import (
    SENT_BLOCK,
    Agent,
    CallState,
    Input,
    State,
    Step,
    StopRequest,
    Tokens,
    Turn,
    with_agent,
)
from pieria.core.values import AgentId, AssistantMessage, Blob, Message, Text, UserMessage

MAX_ATTEMPTS = 6
MAX_FLAWS = 2
MAX_CALLS = 100
LONGEST_WAIT_S = 600.0
RETRIED_KINDS = frozenset({"overloaded", "rate_limited", "network"})
CUT_REASONS = frozenset({"length", "max_tokens", "max_output_tokens"})
CALL_REASONS = frozenset({"tool_calls", "tool_use", "function_call"})

NUDGES = {
    "empty": "Your last answer was empty: no text and no tool call. Go on with the work, or answer the person.",
    "truncated": (
        "Your last answer reached the output limit inside a tool call, so nothing of it was run. "
        "Do the same in smaller pieces: fewer calls at once, or a file in several edits."
    ),
    "cut_text": "Your last answer was cut at the output limit. Continue exactly where it stopped.",
    "go_on": "The turn ended before its time. Go on with the work, or tell the person what is left to do.",
    "too_many_calls": f"Your last answer asked for more than {MAX_CALLS} calls, so none was run. Ask for fewer.",
    "contradiction": "Your last answer announced a tool call but held none. Make the call now, or answer in words.",
}


# --- fold --------------------------------------------------------------------------------------------------------


def _submitted(state: State, record: Record, data: PromptSubmitted) -> State:
    agent = state.agents.get(data.to)
    if agent is None:
        return state
    return with_agent(state, data.to, replace(agent, unread=(*agent.unread, Input(record.seq, data.text))))


def _interrupted(state: State, record: Record, data: InterruptRequested) -> State:
    stop = StopRequest(record.seq, "interrupted")
    for id, agent in state.agents.items():
        if agent.turn is not None and data.to in ("", id):
            state = with_agent(state, id, replace(agent, stop=stop))
    return state


def _turn_started(state: State, record: Record, data: TurnStarted) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None:
        return state
    return with_agent(state, AgentId(record.agent), replace(agent, turn=Turn(record.seq), last_end="", last_detail=""))


def _turn_finished(state: State, record: Record, data: TurnFinished) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None or agent.turn is None:
        return state
    turns = (*agent.turns, replace(agent.turn, calls=()))
    ended = replace(agent, turn=None, turns=turns, stop=None, last_end=data.reason, last_detail=data.detail)
    return with_agent(state, AgentId(record.agent), ended)


def _nudged(state: State, record: Record, data: NudgeGiven) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None:
        return state
    turn = agent.turn if agent.turn is None else replace(agent.turn, step=None)
    notes = (*agent.notes, UserMessage(data.text, label=data.kind))
    return with_agent(state, AgentId(record.agent), replace(agent, turn=turn, notes=notes))


def next_messages(agent: Agent) -> tuple[Message, ...]:
    """What the agent's next request carries beyond its last one, in the order sent."""
    return (*agent.pending, *agent.notes, *(UserMessage(entry.text) for entry in agent.unread))


def sent_by(turn: Turn) -> Iterator[Message]:
    """All messages that a turn's requests added, in the order sent."""
    for block in (*turn.sent_before, turn.sent):
        for messages in block:
            yield from messages


def _step_started(state: State, record: Record, data: StepStarted) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None or agent.turn is None or record.op is None:
        return state
    step = Step(record.seq, record.op, data.attempt)
    if data.attempt > 1:
        again = replace(agent, turn=replace(agent.turn, step=step), last_request=record.seq)
        return with_agent(state, AgentId(record.agent), again)
    before, sent = agent.turn.sent_before, (*agent.turn.sent, next_messages(agent))
    if len(sent) == SENT_BLOCK:
        before, sent = (*before, sent), ()
    turn = replace(agent.turn, step=step, steps=agent.turn.steps + 1, calls=(), sent_before=before, sent=sent)
    asked = replace(agent, turn=turn, pending=(), notes=(), unread=(), last_request=record.seq)
    return replace(with_agent(state, AgentId(record.agent), asked), steps=state.steps + 1)


def _step_partial(state: State, record: Record, data: StepPartial) -> State:
    return _on_step(state, record, lambda step: replace(step, partial=step.partial + data.text))


def _step_finished(state: State, record: Record, data: StepFinished) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None or agent.turn is None or agent.turn.step is None or agent.turn.step.op != record.op:
        return state
    flaw = flaw_of(data, agent.added.sampling.max_tokens or agent.added.max_output)
    if flaw == "contradiction" and agent.turn.flaws:
        flaw = ""  # told once; words that come again without a call are the answer
    step = replace(agent.turn.step, phase="flawed" if flaw else "answered", reason=flaw, partial="")
    flaws = agent.turn.flaws + 1 if flaw else 0
    committed = flaw in ("", "cut_text")
    asked = tuple(CallState(call) for call in data.calls) if not flaw else ()
    answer = AssistantMessage(data.text, data.calls, data.reasoning, data.reasoning_field)
    answered = replace(
        agent,
        turn=replace(agent.turn, step=step, flaws=flaws, calls=asked),
        pending=(*agent.pending, answer) if committed else agent.pending,
        tokens=_count(agent.tokens, data),
        last_text=data.text if committed else agent.last_text,
    )
    used = (data.usage.input or 0) + (data.usage.output or 0) if data.usage else length_of(data.text) // 4
    return replace(with_agent(state, AgentId(record.agent), answered), tokens=state.tokens + used)


def _count(tokens: Tokens, data: StepFinished) -> Tokens:
    if data.usage is None or data.usage.input is None:
        return replace(tokens, unknown=tokens.unknown + 1)
    usage = data.usage
    return Tokens(
        tokens.input + (usage.input or 0), tokens.output + (usage.output or 0), tokens.cached + (usage.cached or 0),
        tokens.unknown,
    )  # fmt: skip


def length_of(text: Text) -> int:
    """Bytes (of a blob) or characters (of an inline text): good enough for estimates."""
    return text.len if isinstance(text, Blob) else len(text)


def flaw_of(data: StepFinished, output_limit: int | None) -> str:
    """Return why an answer can't stand: empty, truncated, cut_text, contradiction, too_many_calls; else nothing."""
    cut = data.stop_reason in CUT_REASONS
    if len(data.calls) > MAX_CALLS:
        return "too_many_calls"
    if data.calls:
        used = data.usage.output if data.usage else None
        at_limit = output_limit is not None and used is not None and used >= output_limit
        return "truncated" if cut or at_limit else ""
    if isinstance(data.text, str) and not data.text.strip():
        return "truncated" if cut else "empty"
    if cut:
        return "cut_text"
    return "contradiction" if data.stop_reason in CALL_REASONS else ""


def _step_lost(state: State, record: Record, data: StepLost) -> State:
    def lose(step: Step) -> Step:
        wait = {"crash": 0.0, "capped": 0.0}.get(data.reason, _backoff_s(step.attempt))
        over = data.reason == "interrupted" or (data.reason not in ("crash", "capped") and step.attempt >= MAX_ATTEMPTS)
        return replace(
            step,
            phase="lost",
            reason=data.reason,
            detail=data.detail,
            wait_s=None if over else wait,
            partial="",
        )

    return _on_step(state, record, lose)


def _step_failed(state: State, record: Record, data: StepFailed) -> State:
    def fail(step: Step) -> Step:
        wait: float | None = None
        if data.kind in RETRIED_KINDS and step.attempt < MAX_ATTEMPTS:
            wait = data.retry_after_s if data.retry_after_s is not None else _backoff_s(step.attempt)
        elif data.kind == "bad_answer" and step.attempt < MAX_FLAWS:
            wait = 0.5
        if wait is not None and wait > LONGEST_WAIT_S:
            wait = None
        detail = f"{data.message} (HTTP {data.status})" if data.status else data.message
        return replace(step, phase="failed", reason=data.kind, detail=detail, wait_s=wait, partial="")

    return _on_step(state, record, fail)


def _backoff_s(attempt: int) -> float:
    return min(60.0, 0.5 * 2.0 ** min(attempt, 9))


def _on_step(state: State, record: Record, change: Callable[[Step], Step]) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None or agent.turn is None or agent.turn.step is None or agent.turn.step.op != record.op:
        return state
    turn = replace(agent.turn, step=change(agent.turn.step))
    return with_agent(state, AgentId(record.agent), replace(agent, turn=turn))


FOLDS: dict[type, Callable[[State, Record, Any], State]] = {
    PromptSubmitted: _submitted,
    InterruptRequested: _interrupted,
    TurnStarted: _turn_started,
    TurnFinished: _turn_finished,
    NudgeGiven: _nudged,
    StepStarted: _step_started,
    StepPartial: _step_partial,
    StepFinished: _step_finished,
    StepLost: _step_lost,
    StepFailed: _step_failed,
}


# --- decide ------------------------------------------------------------------------------------------------------


def decide(state: State, id: AgentId, agent: Agent) -> tuple[Effect, ...]:
    """Return what this agent should do now. Nothing means: something outside is awaited, or there is nothing to do."""
    turn = agent.turn
    if turn is None:
        if not agent.unread or state.out_of_time:
            return ()
        return (_write(id, TurnStarted(tuple(entry.seq for entry in agent.unread))),)
    if agent.stop is not None:
        return _decide_stop(id, agent, turn, agent.stop)
    if any(call.phase != "closed" for call in turn.calls):
        return calls.decide(state, id, agent)
    if turn.step is None:
        if _has_the_last_word(agent):
            return (_write(id, NudgeGiven("go_on", NUDGES["go_on"])),)
        return (CallModel(id, 1),)
    return _decide_after(state, id, turn, turn.step)


def _has_the_last_word(agent: Agent) -> bool:
    """Whether a request would end with the agent's own answer: then there is nothing for the model to answer."""
    if agent.notes or agent.unread or not agent.pending:
        return False
    return isinstance(agent.pending[-1], AssistantMessage)


def _decide_after(state: State, id: AgentId, turn: Turn, step: Step) -> tuple[Effect, ...]:
    match step.phase:
        case "open":
            return ()
        case "answered":
            return (CallModel(id, 1),) if turn.calls else (_write(id, TurnFinished("done")),)
        case "flawed" if turn.flaws < MAX_FLAWS:
            return (_write(id, NudgeGiven(step.reason, NUDGES[step.reason])),)
        case "flawed" if step.reason == "cut_text":
            return (_write(id, TurnFinished("done", "the answer was cut at the output limit")),)
        case "flawed":
            why = "empty answers" if step.reason == "empty" else f"unusable answers ({step.reason})"
            return (_write(id, TurnFinished("failed", f"the model gave no answer: {turn.flaws} {why} in a row")),)
        case "lost" | "failed":
            return _decide_retry(state, id, turn, step)


def _decide_retry(state: State, id: AgentId, turn: Turn, step: Step) -> tuple[Effect, ...]:
    if step.wait_s is None:
        reason = "unavailable" if step.reason in RETRIED_KINDS or step.phase == "lost" else "failed"
        return (_write(id, TurnFinished(reason, f"{step.reason}: {step.detail}")),)
    if step.wait_s <= 0:
        return (CallModel(id, step.attempt + 1),)
    if turn.timer is None:
        return (SetTimer(id, "retry", clock.later(state.time, step.wait_s)),)
    return ()


def _decide_stop(id: AgentId, agent: Agent, turn: Turn, stop: StopRequest) -> tuple[Effect, ...]:
    """End what is in flight; when nothing is, an interrupted turn ends and a capped one rests as it is."""
    effects: list[Effect] = []
    if turn.step is not None and turn.step.phase == "open":
        effects.append(Stop(id, turn.step.op, stop.reason, stop.seq))
    if turn.timer is not None and stop.reason == "interrupted":
        effects.append(_write(id, TimerFired(), op=turn.timer))
    effects += calls.decide_stop(id, agent, stop)
    if effects or stop.reason != "interrupted":
        return tuple(effects)
    return (_write(id, TurnFinished("interrupted")),)


def _write(id: AgentId, event: Any, op: Any = None) -> Write:
    return Write(Draft(id, event, op=op))
