"""What a person, an agent or a clock may ask, and `accept`: a command becomes facts, or is rejected with a reason."""

from __future__ import annotations

from pieria.core.events.calls import ApprovalAnswered
from pieria.core.events.row import Event
from pieria.core.events.session import AgentAdded, ProjectObserved, SessionClosed, SettingsApplied
from pieria.core.events.turns import InterruptRequested, PromptSubmitted, TurnStarted
from pieria.core.record import Draft
from pieria.core.state import State
from pieria.core.values import PERSON, SESSION, AgentId, OpId, Text, Value


class SubmitPrompt(Value, frozen=True, gc=False):
    """The person's words to an agent."""

    to: AgentId
    text: Text


class AnswerApproval(Value, frozen=True, gc=False):
    """The person's answer to an open question."""

    id: OpId
    answer: str
    comment: str = ""


class Interrupt(Value, frozen=True, gc=False):
    """End what an agent is doing; empty `to` means everyone."""

    to: str = ""
    reason: str = ""


class GoOn(Value, frozen=True, gc=False):
    """Take up again what an agent's last turn left unfinished: it failed, was interrupted, or nobody answered."""

    to: AgentId


class Configure(Value, frozen=True, gc=False):
    """Settings, roster or place, as composed by the program that opened the session."""

    event: SettingsApplied | AgentAdded | ProjectObserved | SessionClosed


Command = SubmitPrompt | AnswerApproval | Interrupt | GoOn | Configure


class Rejected(Value, frozen=True, gc=False):
    """Why a command can't be accepted, and what to do instead. Nothing is recorded."""

    reason: str
    hint: str = ""


def accept(state: State, command: Command) -> Draft | Rejected:
    """Return the fact that the command becomes, or why it can't."""
    match command:
        case SubmitPrompt(to=to, text=text):
            if to not in state.agents:
                return Rejected(f"there is no agent '{to}'", f"agents here: {', '.join(state.agents) or 'none'}")
            if isinstance(text, str) and not text.strip():
                return Rejected("the prompt is empty", "say what to do")
            return Draft(PERSON, PromptSubmitted(to=to, text=text))
        case AnswerApproval(id=op, answer=answer, comment=comment):
            if op not in state.approvals:
                open_ids = ", ".join(state.approvals) or "none"
                return Rejected(f"no question with the id '{op}' is open", f"open questions: {open_ids}")
            if answer not in ("allow", "deny"):
                return Rejected(f"'{answer}' is no answer to a question", "allow or deny")
            return Draft(PERSON, ApprovalAnswered(answer=answer, by="person", comment=comment), op=op)
        case Interrupt(to=to, reason=reason):
            if to and to not in state.agents:
                return Rejected(f"there is no agent '{to}'", f"agents here: {', '.join(state.agents) or 'none'}")
            return Draft(PERSON, InterruptRequested(to=to, reason=reason))
        case GoOn(to=to):
            agent = state.agents.get(to)
            if agent is None or agent.turn is not None or agent.last_end in ("", "done"):
                return Rejected(f"'{to}' left nothing unfinished")
            return Draft(to, TurnStarted(()))
        case Configure(event=event):
            return _configure(state, event)


def _configure(state: State, event: Event) -> Draft | Rejected:
    if isinstance(event, AgentAdded):
        if event.id in state.agents:
            return Rejected(f"there is an agent '{event.id}' already")
        if not is_agent_id(event.id):
            return Rejected(
                f"'{event.id}' can't be an agent's id", "a to z, 0 to 9 and -, at most 40, not person or session"
            )
    return Draft(SESSION, event)


def is_agent_id(id: str) -> bool:
    """Whether an id may stand in an envelope and in the name of a folder as it is."""
    plain = id.isascii() and id.replace("-", "a").isalnum() and id == id.lower()
    return plain and len(id) <= 40 and not id.startswith("-") and id not in (PERSON, SESSION)
