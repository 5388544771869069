"""Tool calls: examined, ruled on, run and closed exactly once; results join the context in the order asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from pieria.core import policy
from pieria.core.effects import Effect, Examine, StartTool, Stop, Write
from pieria.core.events.calls import (
    ApprovalAnswered,
    ApprovalRequested,
    CallExamined,
    CallRefused,
    Ruling,
    ToolFinished,
    ToolInterrupted,
    ToolSpawned,
    ToolStarted,
)
from pieria.core.events.files import FilesChanged
from pieria.core.record import Draft, Record
from pieria.core.state import Agent, Approval, CallState, State, StopRequest, with_agent
from pieria.core.values import Access, AgentId, CallId, Text, ToolMessage, UserMessage

MAX_COMMANDS = 8

# --- fold --------------------------------------------------------------------------------------------------------


def _on_call(state: State, record: Record, id: CallId, change: Callable[[CallState], CallState]) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None or (advanced := _advanced(agent, id, change)) is agent:
        return state
    return with_agent(state, AgentId(record.agent), advanced)


def _advanced(agent: Agent, id: CallId, change: Callable[[CallState], CallState]) -> Agent:
    """The agent with an open call changed. When its last call is closed, all results join what it sends next."""
    turn = agent.turn
    for place, entry in enumerate(turn.calls if turn else ()):
        if entry.call.id != id or entry.phase == "closed":
            continue
        assert turn is not None
        entries = (*turn.calls[:place], change(entry), *turn.calls[place + 1 :])
        turn = replace(turn, calls=entries)
        if any(other.phase != "closed" for other in entries):
            return replace(agent, turn=turn)
        results = tuple(ToolMessage(other.call.id, other.call.name, other.result) for other in entries)
        return replace(agent, turn=turn, pending=agent.pending + results)
    return agent


def _examined(state: State, record: Record, data: CallExamined) -> State:
    return _on_call(
        state,
        record,
        data.call,
        lambda call: replace(call, phase="examined", examined=record.seq, facts=data.facts),
    )


def _closing(result: Text) -> Callable[[CallState], CallState]:
    return lambda call: replace(call, phase="closed", result=result, facts=None, spawned=None)


def _refused(state: State, record: Record, data: CallRefused) -> State:
    return _on_call(state, record, data.call, _closing(data.text))


def _requested(state: State, record: Record, data: ApprovalRequested) -> State:
    if record.op is None:
        return state
    asked = Approval(record.op, AgentId(record.agent), data.call, data.action, data.why, record.seq)
    state = replace(state, approvals={**state.approvals, record.op: asked})

    def hold(call: CallState) -> CallState:
        return replace(call, phase="held", approval=record.op, ruled_under=state.settings_seq, granted="")

    return _on_call(state, record, data.call, hold)


def _answered(state: State, record: Record, data: ApprovalAnswered) -> State:
    asked = state.approvals.get(record.op) if record.op else None
    if asked is None:
        return state
    state = replace(state, approvals={op: entry for op, entry in state.approvals.items() if op != asked.op})
    agent = state.agents.get(asked.agent)
    if agent is None or agent.turn is None:
        return state
    granted = asked.action if data.answer == "allow" else ""
    refused = data.answer != "allow" and data.by == "person"  # what policy does not allow it rules on again

    def rule(call: CallState) -> CallState:
        if call.call.id != asked.call:
            return call
        return replace(call, phase="denied" if refused else "asked", granted=granted, comment=data.comment)

    turn = replace(agent.turn, calls=tuple(rule(call) for call in agent.turn.calls))
    return with_agent(state, asked.agent, replace(agent, turn=turn))


def _started(state: State, record: Record, data: ToolStarted) -> State:
    return _on_call(state, record, data.call, lambda call: replace(call, phase="running", op=record.op))


def _spawned(state: State, record: Record, data: ToolSpawned) -> State:
    return _on_call(state, record, data.call, lambda call: replace(call, spawned=data))


def _finished(state: State, record: Record, data: ToolFinished) -> State:
    agent = state.agents.get(AgentId(record.agent))
    if agent is None or (advanced := _advanced(agent, data.call, _closing(data.text))) is agent:
        return state
    files, todo = data.details.files, data.details.todo
    if files:
        known = {**agent.known, **{file.path: file.sha256 for file in files if file.sha256 is not None}}
        for file in files:
            if file.sha256 is None:
                known.pop(file.path, None)
        advanced = replace(advanced, known=known)
    if todo is not None:
        advanced = replace(advanced, todo=todo)
    return with_agent(state, AgentId(record.agent), advanced)


def _cut_off(state: State, record: Record, data: ToolInterrupted) -> State:
    return _on_call(state, record, data.call, _closing(data.text))


def _files_changed(state: State, record: Record, data: FilesChanged) -> State:
    now = {file.path: file.sha256 for file in data.files}
    for id, agent in state.agents.items():
        told = [path for path in now if path in agent.known and agent.known[path] != now[path]]
        if not told:
            continue
        lines = [f"{path} ({'gone' if now[path] is None else 'changed'})" for path in told]
        text = "These files changed outside of this session; read them again before you rely on them:\n"
        known = {path: sha256 for path, sha256 in agent.known.items() if path not in told}
        note = UserMessage(text + "\n".join(lines), label="files changed")
        state = with_agent(state, id, replace(agent, known=known, notes=(*agent.notes, note)))
    return state


FOLDS: dict[type, Callable[[State, Record, Any], State]] = {
    CallExamined: _examined,
    CallRefused: _refused,
    ApprovalRequested: _requested,
    ApprovalAnswered: _answered,
    ToolStarted: _started,
    ToolSpawned: _spawned,
    ToolFinished: _finished,
    ToolInterrupted: _cut_off,
    FilesChanged: _files_changed,
}


# --- decide ------------------------------------------------------------------------------------------------------


def access_of(agent: Agent, name: str) -> Access:
    """What a tool of this agent may touch; a name it does not have touches nothing."""
    return next((tool.access for tool in agent.added.tools if tool.name == name), "note")


def decide(state: State, id: AgentId, agent: Agent) -> tuple[Effect, ...]:
    """Advance every open call of the step. Calls run side by side unless an earlier one may change what they see."""
    effects: list[Effect] = []
    earlier: list[Access] = []
    for entry in agent.turn.calls if agent.turn else ():
        if entry.phase == "closed":
            continue
        access = access_of(agent, entry.call.name)
        if entry.phase != "asked" or not must_wait(access, earlier):
            effects += _advance(state, id, entry)
        if entry.phase not in ("held", "denied"):
            earlier.append(access)
    return tuple(effects)


def must_wait(access: Access, earlier: Sequence[Access]) -> bool:
    """Whether a call waits for open calls asked before it: reads and commands for edits, edits for everything.

    Only so many commands run side by side.
    """
    if access == "shell" and earlier.count("shell") >= MAX_COMMANDS:
        return True
    if access == "edit":
        return any(other != "note" for other in earlier)
    return access in ("read", "shell") and "edit" in earlier


def _advance(state: State, id: AgentId, entry: CallState) -> tuple[Effect, ...]:
    match entry.phase:
        case "asked":
            return (Examine(id, entry.call.id),)
        case "examined":
            return (_rule(state, id, entry),)
        case "held":
            return _rule_again(state, id, entry)
        case "denied":
            comment = f" They said: {entry.comment}" if entry.comment else ""
            text = f"Not run: the person refused this call.{comment} Do not try it again in another form; ask or go on."
            return (_refuse(id, entry, "person", text),)
        case "running" | "closed":
            return ()


def _rule(state: State, id: AgentId, entry: CallState) -> Effect:
    facts = entry.facts
    assert facts is not None
    if facts.error:
        return _refuse(id, entry, "error", facts.error)
    ruled = policy.rule(entry.call.name, facts, state.settings, root=state.agents[id].added.root)
    if ruled.ruling == "deny":  # also what was allowed under older settings and never began
        return _refuse(id, entry, ruled.by, policy.guidance(ruled, facts))
    if entry.granted and facts.action == entry.granted:
        return StartTool(id, entry.call.id, Ruling("approval", entry.approval or ""))
    if ruled.ruling == "allow":
        return StartTool(id, entry.call.id, Ruling(ruled.by, ruled.reason))
    why = "what was approved has changed; asked again" if entry.granted else ruled.reason
    return Write(Draft(id, ApprovalRequested(entry.call.id, facts.action, why)))


def _rule_again(state: State, id: AgentId, entry: CallState) -> tuple[Effect, ...]:
    """An open question under newer settings is ruled on again; if they still ask, the same question stands."""
    if entry.ruled_under >= state.settings_seq or entry.facts is None:
        return ()
    ruled = policy.rule(entry.call.name, entry.facts, state.settings, root=state.agents[id].added.root)
    if ruled.ruling == "ask":
        return ()
    return (Write(Draft(id, ApprovalAnswered(ruled.ruling, "policy", ruled.reason), op=entry.approval)),)


def _refuse(id: AgentId, entry: CallState, by: str, text: Text) -> Write:
    return Write(Draft(id, CallRefused(entry.call.id, by, text)))


def decide_stop(id: AgentId, agent: Agent, stop: StopRequest) -> tuple[Effect, ...]:
    """End running calls; on the person's interrupt, close those that never began as well."""
    effects: list[Effect] = []
    for entry in agent.turn.calls if agent.turn else ():
        if entry.phase == "running" and entry.op is not None:
            effects.append(Stop(id, entry.op, stop.reason, stop.seq))
        elif entry.phase != "closed" and stop.reason == "interrupted":
            if entry.phase == "held":
                effects.append(Write(Draft(id, ApprovalAnswered("void", "policy", "interrupted"), op=entry.approval)))
            else:
                effects.append(_refuse(id, entry, "stop", "Not run: the person interrupted the turn."))
    return tuple(effects)
