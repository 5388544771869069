"""Tell the core a story, fact by fact, and ask what it would do next."""

from __future__ import annotations

from pieria.core import clock
from pieria.core.context import added_messages
from pieria.core.decide import decide
from pieria.core.effects import CallModel, Effect, Examine, SetTimer, StartTool, Stop, Write
from pieria.core.events.calls import ApprovalAnswered, CallExamined, ToolFinished, ToolStarted
from pieria.core.events.model import Request, StepFinished, StepStarted
from pieria.core.events.row import Event
from pieria.core.events.session import AgentAdded, SettingsApplied
from pieria.core.events.turns import InterruptRequested, PromptSubmitted, TimerFired, TimerSet
from pieria.core.fold import fold
from pieria.core.record import FIRST_PREV, Draft, Record, encode
from pieria.core.state import Agent, CallState, State
from pieria.core.values import (
    PERSON,
    SESSION,
    Access,
    AgentId,
    Call,
    CallId,
    Examined,
    Message,
    OpId,
    ToolSpec,
    TouchedPath,
    Usage,
)

ROOT = "/home/ada/app"
START = "2026-01-01T00:00:00.000000Z"
LEAD = AgentId("lead")
ACCESS: dict[str, Access] = {"read": "read", "edit": "edit", "shell": "shell", "todo": "note"}
TOOLS = tuple(ToolSpec(name, 1, access, "", "{}") for name, access in ACCESS.items())
PLACE = TouchedPath("src/a.py", f"{ROOT}/src/a.py", inside=True)
OUTSIDE = TouchedPath("/etc/hosts", "/etc/hosts", inside=False)


class Story:
    """A session from its first record on. Every method adds facts; `state` is what they mean."""

    def __init__(self, *agents: str, settings: SettingsApplied | None = None, max_output: int | None = None) -> None:
        self.records: list[Record] = []
        self.state = State()
        self.time = START
        self.sent: dict[str, list[Message]] = {}
        self._counts: dict[str, int] = {}
        self.tell(SESSION, settings or SettingsApplied("edits"))
        for id in agents or (LEAD,):
            self.tell(SESSION, AgentAdded(AgentId(id), "lead", "script", "m", f"You are {id}.", TOOLS, ROOT,
                                          max_output=max_output))  # fmt: skip

    def tell(self, agent: str, event: Event, *, op: OpId | None = None) -> Record:
        """Add one fact; a second goes by."""
        n = self._counts[agent] = self._counts.get(agent, -1) + 1
        self.time = clock.later(self.time, 1.0)
        record, _ = encode(Draft(agent, event, op=op), seq=len(self.records), prev=FIRST_PREV, durable=0, epoch=1,
                           time=self.time, n=n)  # fmt: skip
        self.records.append(record)
        self.state = fold(self.state, record)
        return record

    # --- asking ---------------------------------------------------------------------------------------------------

    def decided(self) -> tuple[Effect, ...]:
        return decide(self.state)

    def agent(self, id: str = LEAD) -> Agent:
        return self.state.agents[AgentId(id)]

    def call(self, position: int, id: str = LEAD) -> CallState:
        turn = self.agent(id).turn
        assert turn is not None
        return turn.calls[position]

    def said(self, kind: type[Event]) -> list[Event]:
        """All facts of one type so far."""
        return [record.data for record in self.records if isinstance(record.data, kind)]

    # --- going on -------------------------------------------------------------------------------------------------

    def settle(self) -> tuple[Effect, ...]:
        """Record all intents that the core decides on, until only looks and stops are left; return those."""
        for _ in range(50):
            effects = self.decided()
            todo = [effect for effect in effects if not isinstance(effect, Examine | Stop)]
            if not todo:
                return effects
            for effect in todo:
                self._begin(effect)
        raise AssertionError("it never settles")

    def _begin(self, effect: Effect) -> None:
        match effect:
            case Write(draft=draft):
                self.tell(draft.agent, draft.event, op=draft.op)
            case CallModel(agent=id, attempt=attempt):
                agent = self.agent(id)
                if attempt == 1:
                    self.sent.setdefault(id, []).extend(added_messages(self.state, agent))
                request = Request(agent.last_request, (), 1, 1, "", 0)
                self.tell(id, StepStarted(request, attempt, effect.purpose, "m"))
            case StartTool(agent=id, call=call, ruling=ruling):
                turn = self.agent(id).turn
                assert turn is not None
                entry = next(entry for entry in turn.calls if entry.call.id == call)
                self.tell(id, ToolStarted(call, entry.call.name, 1, entry.examined, ruling))
            case SetTimer(agent=id, purpose=purpose, deadline=deadline):
                self.tell(id, TimerSet(purpose, deadline))

    def prompt(self, text: str = "do it", to: str = LEAD) -> tuple[Effect, ...]:
        self.tell(PERSON, PromptSubmitted(AgentId(to), text))
        return self.settle()

    def ends(self, event: Event, id: str = LEAD) -> tuple[Effect, ...]:
        """The model call in flight ends."""
        turn = self.agent(id).turn
        assert turn is not None
        assert turn.step is not None
        self.tell(id, event, op=turn.step.op)
        return self.settle()

    def answers(
        self, *tools: str, text: str = "", id: str = LEAD, stop_reason: str = "", usage: Usage | None = None
    ) -> tuple[Effect, ...]:
        """The model answers, asking for these tools."""
        turn = self.agent(id).turn
        assert turn is not None
        assert turn.step is not None
        calls = tuple(Call(CallId(f"{turn.step.op}.{i}"), name, "{}") for i, name in enumerate(tools))
        return self.ends(StepFinished(text, calls, stop_reason=stop_reason, usage=usage), id)

    def looks(
        self, position: int, *, id: str = LEAD, action: str = "action", paths: tuple[TouchedPath, ...] = (PLACE,),
        error: str = "", words: tuple[str, ...] | None = None,
    ) -> tuple[Effect, ...]:  # fmt: skip
        """A call is examined."""
        call = self.call(position, id).call
        access = ACCESS.get(call.name, "note")
        facts = Examined(access, action, error=error, paths=paths if access in {"read", "edit"} else (), words=words,
                         command=" ".join(words or ("a", "|", "b")) if access == "shell" else "")  # fmt: skip
        self.tell(id, CallExamined(call.id, facts))
        return self.settle()

    def finishes(self, position: int, text: str = "ok", *, id: str = LEAD) -> tuple[Effect, ...]:
        """A running call ends."""
        entry = self.call(position, id)
        self.tell(id, ToolFinished(entry.call.id, text), op=entry.op)
        return self.settle()

    def allows(self, answer: str = "allow", comment: str = "") -> tuple[Effect, ...]:
        """The person answers the oldest open question."""
        op = next(iter(self.state.approvals))
        self.tell(PERSON, ApprovalAnswered(answer, "person", comment), op=op)
        return self.settle()

    def interrupts(self, to: str = "") -> tuple[Effect, ...]:
        self.tell(PERSON, InterruptRequested(to))
        return self.settle()

    def applies(self, settings: SettingsApplied) -> tuple[Effect, ...]:
        self.tell(SESSION, settings)
        return self.settle()

    def fires(self) -> tuple[Effect, ...]:
        """The oldest timer fires at its time."""
        timer = next(iter(self.state.timers.values()))
        self.time = max(self.time, timer.deadline)
        self.tell(timer.agent, TimerFired(), op=timer.op)
        return self.settle()
