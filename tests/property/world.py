"""A world without I/O: plays decide's effects with chosen outcomes, in any order, with crashes at any point.

Choices come from bytes; when they run out, everything is benign, so that a shorter script is a simpler story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from pieria.core import clock, timers
from pieria.core.commands import AnswerApproval, Command, Configure, GoOn, Interrupt, Rejected, SubmitPrompt, accept
from pieria.core.context import added_messages
from pieria.core.decide import decide
from pieria.core.effects import CallModel, Effect, Examine, SetTimer, StartTool, Stop, Write
from pieria.core.events.calls import CallExamined, ToolFinished, ToolInterrupted, ToolSpawned, ToolStarted
from pieria.core.events.files import FilesChanged
from pieria.core.events.model import Request, StepFailed, StepFinished, StepLost, StepPartial, StepStarted
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
from pieria.core.events.turns import TimerFired, TimerSet
from pieria.core.fold import fold
from pieria.core.record import FIRST_PREV, Draft, Record, decode, encode
from pieria.core.state import CallState, State
from pieria.core.turn import sent_by
from pieria.core.values import (
    SESSION,
    AgentId,
    Blob,
    Call,
    CallId,
    Change,
    Details,
    Examined,
    FileHash,
    OpId,
    SystemMessage,
    Todo,
    ToolSpec,
    TouchedPath,
    Usage,
)
from pieria.core.view import answer, is_resting, outcome, questions
from tests.property.book import Book, entry_of, is_capped

START = "2026-01-01T00:00:00.000000Z"
ROOT = "/home/ada/app"
TOOLS = tuple(ToolSpec(name, 1, access, "", "{}") for name, access in
              {"read": "read", "edit": "edit", "shell": "shell", "todo": "note"}.items())  # fmt: skip
CAP = 100
MOST_ROUNDS = 60
CHANGES = ("", "deny-shell", "deny-edit", "allow-shell")
KINDS = ("rate_limited", "overloaded", "network", "bad_answer", "too_long", "refused", "unauthorised", "bad_request")
TEXTS = ("", " ", "done", "ĝi estas farita \N{WHITE HEAVY CHECK MARK}", "\u2028", '"\\\x00', Blob(0, "ab" * 32, 5000))


class Dice:
    """Choices, 0 when there are no more."""

    def __init__(self, rolls: bytes) -> None:
        self._rolls = iter(rolls)
        self.are_left = bool(rolls)

    def pick(self, sides: int) -> int:
        roll = next(self._rolls, None)
        self.are_left = self.are_left and roll is not None
        return (roll or 0) % sides

    def of(self, options: Sequence):
        return options[self.pick(len(options))]


class Flight(NamedTuple):
    """An effect in flight."""

    agent: AgentId
    land: Callable[[], list[Draft]]


def rules(choice: str) -> dict[str, tuple[str, ...]]:
    match choice:
        case "deny-shell":
            return {"deny": ("shell",)}
        case "deny-edit":
            return {"deny": ("edit(src/a.py)",)}
        case "allow-shell":
            return {"allow": ("shell(make *)",)}
    return {}


class World:
    """One session. `state` is live; `replayed` is made of nothing but the lines."""

    def __init__(self, dice: Dice, agents: int) -> None:
        self.dice = dice
        self.book = Book()
        self.state = self.replayed = State()
        self.lines: list[bytes] = []
        self.records: list[Record] = []
        self.flights: dict[OpId, Flight] = {}
        self.looks: dict[CallId, AgentId] = {}
        self.stops: dict[OpId, str] = {}
        self.prev, self.time, self.epoch = FIRST_PREV, START, 1
        self.counts: dict[str, int] = {}
        self.epochs = self.prompts = 0
        created = SessionCreated("pieria", 1, "s", 0, "0", 1, 1, "linux", "boot", ROOT)
        self.append([Draft(SESSION, created), Draft(SESSION, SessionOpened(1, 1, "boot", "0"))])
        self.submit(Configure(SettingsApplied("edits")))
        for i in range(agents):
            self.submit(Configure(AgentAdded(AgentId(f"a{i}"), "lead", "script", "m", f"You are {i}.", TOOLS, ROOT,
                                             max_output=CAP)))  # fmt: skip
        self.submit(Configure(ProjectObserved(ROOT, "facts", (Instruction("AGENTS.md", "Be kind."),))))

    # --- writing --------------------------------------------------------------------------------------------------

    def append(self, drafts: Sequence[Draft]) -> list[Record]:
        begun = self.state
        made = [self._append(draft) for draft in drafts]
        for record in made:
            if isinstance(record.data, StepStarted) and record.data.attempt == 1:
                id = AgentId(record.agent)
                self.book.note_request(id, added_messages(begun, begun.agents[id]))
        self._look_at_views()
        return made

    def _append(self, draft: Draft) -> Record:
        self.time = clock.later(self.time, 0.001)
        n = self.counts.get(draft.agent, 0)
        self.counts[draft.agent] = n + 1
        record, line = encode(draft, seq=len(self.lines), prev=self.prev, durable=len(self.lines) - 1,
                              epoch=self.epoch, time=self.time, n=n)  # fmt: skip
        self.prev = record.hash
        self.lines.append(line)
        self.records.append(record)
        if isinstance(record.data, StepStarted):
            assert record.data.request.sha256 == digest(self.replayed, record), "replay rebuilds the same request"
        before, self.state = self.state, fold(self.state, record)
        read = decode(line)
        assert read == record
        self.replayed = fold(self.replayed, read)
        self.book.note(record, before, self.state)
        return record

    def _look_at_views(self) -> None:
        for view in (outcome, questions, answer, is_resting):
            view(self.state)

    def submit(self, command: Command) -> bool:
        draft = accept(self.state, command)
        if isinstance(draft, Rejected):
            assert draft.reason
            return False
        self.append([draft])
        self.settle()
        return True

    # --- deciding -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        for _ in range(MOST_ROUNDS):
            effects = decide(self.state)
            assert decide(self.state) == effects, "the same state decides the same"
            todo = [effect for effect in effects if not self._is_underway(effect)]
            if not todo:
                self._check_rest()
                return
            begun = [(effect, self._drafts(effect)) for effect in todo]
            records = self.append([draft for _, drafts in begun for draft in drafts])
            for effect, drafts in begun:
                mine, records = records[: len(drafts)], records[len(drafts) :]
                if mine:
                    self._launch(effect, mine[0])
        raise AssertionError("settling is bounded")

    def _is_underway(self, effect: Effect) -> bool:
        match effect:
            case Examine(call=call):
                return call in self.looks
            case Stop(op=op):
                return op in self.stops
        return False

    def _drafts(self, effect: Effect) -> list[Draft]:
        match effect:
            case Write(draft=draft):
                return [draft]
            case CallModel(agent=id, attempt=attempt):
                agent = self.state.agents[id]
                request = Request(agent.last_request, (), 1, 1, digest_of(self.state, id, attempt), 0)
                return [Draft(id, StepStarted(request, attempt, effect.purpose, "m"), basis=self.state.seq)]
            case StartTool(agent=id, call=call, ruling=ruling):
                entry = entry_of(self.state, id, call)
                drafts = [Draft(id, ToolStarted(call, entry.call.name, 1, entry.examined, ruling))]
                if entry.facts.access == "shell":
                    drafts.append(Draft(id, ToolSpawned(call, 7, 7, "boot", str(call))))
                return drafts
            case SetTimer(agent=id, purpose=purpose, deadline=deadline):
                return [Draft(id, TimerSet(purpose, deadline))]
            case Examine(agent=id, call=call):
                if self.dice.pick(2):
                    self.looks[call] = id
                    return []
                return [self._examined(id, call)]
            case Stop(op=op, reason=reason):
                self.stops[op] = reason
                return []

    def _launch(self, effect: Effect, intent: Record) -> None:
        op = intent.op
        match effect:
            case CallModel(agent=id):
                self.flights[op] = Flight(id, lambda: self._answered(id, op))
            case StartTool(agent=id, call=call):
                self.flights[op] = Flight(id, lambda: self._ended(id, op, call))
            case SetTimer(agent=id, deadline=deadline):
                self.flights[op] = Flight(id, lambda: self._fired(id, op, deadline))
            case Write() if isinstance(intent.data, TimerFired):
                self.flights.pop(op, None)

    def _check_rest(self) -> None:
        """An empty decide means that something outside is awaited, or all is done."""
        over = timers.is_over(self.state)  # then no attempt follows a retry's timer
        deadlines = {timer.op for timer in self.state.timers.values() if over or timer.purpose == "deadline"}
        quiet = self.flights.keys() <= deadlines and not decide(self.state)
        assert is_resting(self.state) == quiet, "the view knows what is in flight"
        for id, agent in self.state.agents.items():
            idle = agent.turn is None and not agent.unread
            awaited = id in {flight.agent for flight in self.flights.values()} | set(self.looks.values())
            asked = any(approval.agent == id for approval in self.state.approvals.values())
            assert idle or awaited or asked or is_capped(self.state), f"{id} waits for nothing"

    # --- outcomes -------------------------------------------------------------------------------------------------

    def _examined(self, id: AgentId, call: CallId) -> Draft:
        entry = entry_of(self.state, id, call)
        access = next((tool.access for tool in TOOLS if tool.name == entry.call.name), None)
        if access is None:
            return Draft(id, CallExamined(call, Examined("note", "", error=f"There is no tool '{entry.call.name}'.")))
        chance = self.dice.pick(8)
        if chance == 1:
            return Draft(id, CallExamined(call, Examined(access, "", error="no such file")))
        action = f"{call}:{self.dice.pick(5) // 4}"
        place = f"{ROOT}/src/a.py" if chance != 2 else "/etc/hosts"
        paths = (TouchedPath(place.removeprefix(f"{ROOT}/"), place, inside=chance != 2, guarded=chance == 3),)
        changes = (Change(place, None, "c" * 64),) if access == "edit" else ()
        words = ("make", "test") if access == "shell" and chance != 4 else None
        command = "make test" if words else "make && true"
        facts = Examined(access, action, paths=paths if access in ("read", "edit") else (), words=words, cwd=ROOT,
                         command=command if access == "shell" else "", changes=changes)  # fmt: skip
        return Draft(id, CallExamined(call, facts))

    def _answered(self, id: AgentId, op: OpId) -> list[Draft]:
        reason = self.stops.pop(op, None)
        if reason is not None and self.dice.pick(4):
            return [Draft(id, StepLost(reason), op=op)]
        partial = [Draft(id, StepPartial("par"), op=op)] if self.dice.pick(8) == 7 else []
        return [*partial, Draft(id, self._answer(op), op=op)]

    def _answer(self, op: OpId) -> StepFinished | StepLost | StepFailed:
        dice = self.dice
        usage = dice.of((None, Usage(40, 9, 3), Usage(40), Usage(1, CAP)))
        calls = tuple(
            Call(CallId(f"{op}.{i}"), dice.of(("read", "edit", "shell", "todo", "Read")), dice.of(TEXTS))
            for i in range(1 + dice.pick(4) if dice.are_left else 0)
        )
        match dice.pick(14) if dice.are_left else 0:
            case 0:
                return StepFinished("done", stop_reason="stop", usage=usage)
            case 1 | 2 | 3 | 4 | 5:
                return StepFinished(dice.of(TEXTS), calls, stop_reason=dice.of(("tool_calls", "stop", "")), usage=usage)
            case 6:
                return StepFinished(dice.of(("", " \n")), reasoning=dice.of(("", "hm")), usage=usage)
            case 7:
                return StepFinished("I was going to", stop_reason="length", usage=usage)
            case 8:
                return StepFinished(dice.of(TEXTS), calls, stop_reason="max_tokens", usage=usage)
            case 9:
                return StepFinished("I call", stop_reason="tool_use", usage=usage)
            case 10 | 11:
                return StepLost(dice.of(("broken_stream", "stalled")), "cut", 3, 1)
        wait = dice.of((None, 0.0, 7.5, 3600.0))
        return StepFailed(dice.of(KINDS), dice.of((0, 429, 503)), "no", retry_after_s=wait)

    def _ended(self, id: AgentId, op: OpId, call: CallId) -> list[Draft]:
        reason = self.stops.pop(op, None)
        chance = self.dice.pick(6)
        if (reason is not None and chance) or chance == 5:
            return [Draft(id, ToolInterrupted(call, "stopped" if reason else "unknown", "cut off"), op=op)]
        files = (FileHash(f"{ROOT}/src/a.py", self.dice.of(("c" * 64, None))),) if chance == 1 else ()
        todo = (Todo("x", "doing"),) if chance == 2 else None
        details = Details(exit_code=chance, files=files, todo=todo)
        return [Draft(id, ToolFinished(call, self.dice.of(TEXTS), error=chance == 3, details=details), op=op)]

    def _fired(self, id: AgentId, op: OpId, deadline: str) -> list[Draft]:
        self.time = max(self.time, deadline)
        return [Draft(id, TimerFired(), op=op)]

    def land(self, position: int) -> bool:
        """Let one effect in flight, or one look at a call, come to its end."""
        waiting = [*self.looks, *self.flights]
        if not waiting:
            return False
        key = waiting[position % len(waiting)]
        if key in self.looks:
            id = self.looks.pop(key)
            if any(entry.call.id == key and entry.phase == "asked" for entry in calls_of(self.state, id)):
                self.append([self._examined(id, key)])
        else:
            self.append(self.flights.pop(key).land())
        self.settle()
        return True

    # --- what may come from outside ---------------------------------------------------------------------------------

    def prompt(self, *, most: int = 16) -> bool:
        self.prompts += 1
        agents = list(self.state.agents)
        if self.prompts > most:
            return False
        return self.submit(SubmitPrompt(self.dice.of(agents), f"prompt {self.prompts}"))

    def answer(self) -> bool:
        asked = list(self.state.approvals)
        if not asked:
            return self.submit(AnswerApproval(OpId("a0.0"), "allow"))
        said = self.dice.of(("allow", "allow", "deny"))
        return self.submit(AnswerApproval(self.dice.of(asked), said, self.dice.of(("", "rather not"))))

    def interrupt(self) -> None:
        self.submit(Interrupt(self.dice.of(("", *self.state.agents)), "enough"))

    def go_on(self) -> bool:
        return self.submit(GoOn(self.dice.of(list(self.state.agents))))

    def reconfigure(self) -> None:
        dice = self.dice
        deadline = dice.of(("", clock.later(self.time, 5.0), START))
        self.submit(
            Configure(
                SettingsApplied(
                    dice.of(("edits", "ask", "plan", "full")), **rules(dice.of(CHANGES)), deadline=deadline,
                    max_steps=dice.of((None, 1, 2, 5)), max_tokens=dice.of((None, None, 60)),
                )
            )
        )  # fmt: skip

    def change_files(self) -> None:
        now = self.dice.of(("d" * 64, None))
        self.append([Draft(SESSION, FilesChanged((FileHash(f"{ROOT}/src/a.py", now),)))])
        self.settle()

    def fill(self) -> None:
        closed = SessionClosed("finished", 0)
        self.append([Draft(SESSION, event) for event in (Mark(), BlobStored(0, 1, "a" * 64, 1, "x"), closed)])
        self.settle()

    def crash(self) -> None:
        """Lose everything but the lines, open again, and do what recovery does, with other crashes inside it."""
        self.check_replay()
        self.epoch += 1
        self.flights, self.looks, self.stops = {}, {}, {}
        self.state = self.replayed
        moved_to = self.dice.of(("", "", "", "/elsewhere"))
        opened = SessionOpened(2, 2, "boot", "0", unclean_ends=self.epoch - 1, moved_to=moved_to)
        self.append([Draft(SESSION, opened)])
        for id, agent in self.state.agents.items():
            if self.dice.pick(8) == 7 and self.epoch < 8:
                self.crash()
                return
            if agent.turn and agent.turn.step and agent.turn.step.phase == "open":
                self.append([Draft(id, StepLost("crash"), op=agent.turn.step.op)])
            for entry in calls_of(self.state, id):
                if entry.phase == "running":
                    self._take_up(id, entry)
        for timer in self.state.timers.values():
            self.flights[timer.op] = Flight(timer.agent, lambda t=timer: self._fired(t.agent, t.op, t.deadline))
        self.settle()

    def _take_up(self, id: AgentId, entry: CallState) -> None:
        op, call = entry.op, entry.call.id
        if entry.facts.access == "shell":
            chance = self.dice.pick(3)
            if chance == 1:
                self.append([Draft(id, ToolInterrupted(call, "unknown", "who knows"), op=op)])
                return
            if chance == 2:
                self.append([Draft(id, ToolSpawned(call, 8, 8, "boot", f"{call}-again"))])
        self.flights[op] = Flight(id, lambda: self._ended(id, op, call))

    def check_replay(self) -> None:
        assert self.replayed == self.state, "the lines alone give the live state"

    # --- a whole story --------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Let anything happen as long as there are dice, then let everything come to its end."""
        self.prompt()
        events = (
            *[lambda: self.land(self.dice.pick(8))] * 22, *[self.prompt] * 4, *[self.answer] * 4, self.interrupt,
            self.reconfigure, self.crash, self.change_files, self.fill, self.go_on, self.go_on,
        )  # fmt: skip
        while self.dice.are_left:
            events[self.dice.pick(len(events))]()
        self.check_replay()
        self.submit(Configure(SettingsApplied("edits")))
        for _ in range(1000):
            if not self.land(0) and not (self.state.approvals and self.answer()):
                break
        self.check_replay()
        self.book.check_end(self.state)
        assert is_resting(self.state)


def calls_of(state: State, id: AgentId) -> tuple[CallState, ...]:
    turn = state.agents[id].turn
    return turn.calls if turn else ()


def digest_of(state: State, id: AgentId, attempt: int) -> str:
    """Stands for a request's bytes: each is a function of all that the agent was sent before, and of what is added."""
    agent = state.agents[id]
    turns = (*agent.turns, agent.turn) if agent.turn else agent.turns
    sent = [message for turn in turns for message in sent_by(turn)]
    added = [message for message in added_messages(state, agent) if not isinstance(message, SystemMessage)]
    return sha256(msgspec.json.encode(sent + (added if attempt == 1 else []))).hexdigest()


def digest(state: State, record: Record) -> str:
    return digest_of(state, AgentId(record.agent), record.data.attempt)
