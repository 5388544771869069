"""Word what came back from the world as facts, with known secrets masked. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from pieria.core.events.calls import ToolInterrupted
from pieria.core.events.model import StepFailed, StepFinished, StepLost
from pieria.core.events.row import Event
from pieria.core.events.turns import TimerFired
from pieria.core.ports import Answer, BrokenStream, Failure, Secrets, Texts
from pieria.core.record import Draft
from pieria.core.state import Agent
from pieria.core.values import AgentId, Call, CallId, Change, Examined, OpId, ToolResult


def answered(op: OpId, answer: Answer | BrokenStream | Failure, duration_ms: int, secrets: Secrets) -> Event:
    """How a model call ended. Calls get ids of ours: the operation's with their position."""
    mask = secrets.mask
    match answer:
        case Answer():
            calls = tuple(
                Call(CallId(f"{op}.{i}"), mask(call.name), mask(call.arguments), mask(call.provider_id))
                for i, call in enumerate(answer.calls)
            )
            return StepFinished(
                text=mask(answer.text), calls=calls, reasoning=mask(answer.reasoning),
                reasoning_field=answer.reasoning_field, stop_reason=answer.stop_reason, usage=answer.usage,
                model=mask(answer.model), response_id=mask(answer.response_id), token_ids=answer.token_ids,
                logprobs=answer.logprobs, duration_ms=duration_ms,
            )  # fmt: skip
        case BrokenStream():
            reason = "stalled" if answer.detail.startswith("stalled") else "broken_stream"
            return StepLost(reason, mask(answer.detail), answer.partial_bytes, answer.partial_bytes // 4)
        case Failure():
            return StepFailed(answer.kind, answer.status, mask(answer.message), answer.retry_after_s)


def masked_facts(facts: Examined, texts: Texts, secrets: Secrets) -> Examined:
    """Examined facts fit to be recorded."""
    mask = secrets.mask

    def masked(change: Change) -> Change:
        pre = None if change.pre is None else mask(texts.text(change.pre))
        post = None if change.post is None else mask(texts.text(change.post))
        return replace(change, pre=pre, post=post)

    return replace(
        facts,
        error=mask(texts.text(facts.error)),
        command=mask(texts.text(facts.command)),
        words=None if facts.words is None else tuple(mask(word) for word in facts.words),
        changes=tuple(masked(change) for change in facts.changes),
        diff=mask(texts.text(facts.diff)),
        note=mask(texts.text(facts.note)),
    )


def masked_result(result: ToolResult, texts: Texts, secrets: Secrets) -> ToolResult:
    """A result fit to be recorded."""
    todo = result.details.todo
    if todo is not None:
        todo = tuple(replace(item, text=secrets.mask(item.text)) for item in todo)
    text = secrets.mask(texts.text(result.text))
    return replace(result, text=text, details=replace(result.details, todo=todo))


def failed(agent: Agent | None, id: AgentId, op: OpId, problem: BaseException) -> list[Draft]:
    """Close an operation whose performing broke down: a defect of ours, kept as a fact and shown."""
    turn = agent.turn if agent else None
    entry = next((call for call in turn.calls if call.op == op), None) if turn else None
    if entry is not None:
        text = f"The tool failed inside the harness ({problem!r}); its effect is unknown. Check before going on."
        return [Draft(id, ToolInterrupted(entry.call.id, "unknown", text), op=op)]
    if turn and turn.step and turn.step.op == op:
        return [Draft(id, StepFailed("bad_request", message=f"internal fault: {problem!r}"[:500]), op=op)]
    return [Draft(id, TimerFired(late=True), op=op)]


def lost(id: AgentId, op: OpId, reason: str, partial: str) -> list[Draft]:
    """Close a model call that was cut off."""
    size = len(partial.encode())
    return [Draft(id, StepLost(reason, partial_bytes=size, estimated_output=size // 4), op=op)]
