"""Scripted sessions, made from a seed: what the models answer, what the person does, and when.

Invariant: both are functions of the state alone, so that a session taken up anywhere goes on as it would have gone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from hashlib import sha256

import msgspec

from pieria.app.binding import tool_specs
from pieria.core.commands import AnswerApproval, Command, Configure, Interrupt, SubmitPrompt
from pieria.core.events.session import AgentAdded, SettingsApplied
from pieria.core.state import Agent, State
from pieria.core.turn import NUDGES
from pieria.core.values import AgentId, UserMessage
from pieria.core.view import Question, questions
from pieria.models.script import Played, ScriptedAnswer, ScriptedCall, rendered
from tests.crash.kernel import BLOCKS, Kernel

LEAD = "lead"
SECRET, MASKED = "hunter2-4711-abcdef", "<<secret:TOKEN>>"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
UNCOMMITTED = [NUDGES[kind] for kind in ("empty", "truncated", "contradiction")]
CHANGED = b"changed while nobody was here\n"


class Step(msgspec.Struct, frozen=True):
    """One answer and what comes before it. `gate`: what the answer waits for: prompt, interrupt or mark."""

    answer: ScriptedAnswer
    faults: tuple[ScriptedAnswer, ...] = ()
    gate: str = ""
    extra: str = ""


class Turn(msgspec.Struct, frozen=True):
    """A prompt and the answers of its turn."""

    prompt: str
    steps: tuple[Step, ...]


class Member(msgspec.Struct, frozen=True):
    """One agent and its turns."""

    id: str
    folder: str
    turns: tuple[Turn, ...]


class Plan(msgspec.Struct, frozen=True):
    """A session. After the lead's turn `downtime` a file changes while no process runs; `closes`: after a clean end."""

    seed: int
    mode: str
    members: tuple[Member, ...]
    files: dict[str, bytes]
    links: dict[str, str] = {}
    downtime: int = -1
    closes: bool = False
    deadline: str = ""

    def settings(self) -> SettingsApplied:
        return SettingsApplied(self.mode, deny=("shell(rm *)",), deadline=self.deadline)

    def member(self, id: str) -> Member:
        return next(member for member in self.members if member.id == id)

    # --- the model ------------------------------------------------------------------------------------------------

    def step(self, id: str, turn: int, index: int) -> Step:
        return self.member(id).turns[turn].steps[index]

    def asked(self, body: bytes) -> tuple[str, int, int]:
        """Whose request this is, in which turn, for which of its answers."""
        messages = msgspec.json.decode(body)["messages"]
        for back, message in enumerate(reversed(messages)):
            content = message.get("content") or ""
            if message["role"] == "user" and content.startswith("[turn "):
                turn, _, id = content[6 : content.index("]")].partition(" of ")
                after = messages[len(messages) - back :]
                index = sum(_counts(each) for each in after)
                return id, int(turn), index
        raise AssertionError("a request without a prompt of the plan")

    def play(self, body: bytes, attempts: dict[str, int]) -> tuple[Played, Step, str]:
        """The response to a request, counted like a server would."""
        id, turn, index = self.asked(body)
        step = self.step(id, turn, index)
        digest = sha256(body).hexdigest()
        attempt = attempts[digest] = attempts.get(digest, 0) + 1
        answer = step.faults[attempt - 1] if attempt <= len(step.faults) else step.answer
        return rendered(answer, number=index, model="plan", request_bytes=len(body)), step, id

    # --- the person -----------------------------------------------------------------------------------------------

    def due(self, state: State, kernel: Kernel, *, was_down: bool) -> Command | None:
        """What the person does next, if anything."""
        for member in self.members:
            agent = state.agents.get(AgentId(member.id))
            if agent is None:
                return Configure(self._added(member, state))
            if (command := self._due_for(member, agent, kernel, was_down=was_down)) is not None:
                return command
        return next((_answer(question) for question in questions(state)), None)

    def _due_for(self, member: Member, agent: Agent, kernel: Kernel, *, was_down: bool) -> Command | None:
        said = prompts_of(agent)
        begun = sum(text.startswith("[turn ") for text in said)
        turn = agent.turn
        if turn is None and not agent.unread:
            waits = member.id == LEAD and self.downtime >= 0 and begun == self.downtime + 1 and not was_down
            if begun < len(member.turns) and not waits:
                return SubmitPrompt(AgentId(member.id), member.turns[begun].prompt)
            return None
        if turn is None or agent.stop is not None:
            return None
        if turn.step is not None and turn.step.phase == "open":
            step = self.step(member.id, begun - 1, turn.steps - 1)
            if step.gate == "prompt" and step.extra not in said:
                return SubmitPrompt(AgentId(member.id), step.extra)
            if step.gate == "interrupt":
                return Interrupt(to=member.id, reason="enough")
        for call in turn.calls:
            command = str(call.facts.command) if call.facts is not None else ""
            if call.spawned is not None and "CUT" not in command and kernel.blocks(call.spawned.job):
                return Interrupt(to=member.id)
        return None

    def is_over(self, state: State, kernel: Kernel, *, was_down: bool) -> bool:
        """Whether the person has nothing more to do and every agent is through, or through for now."""
        idle = all(agent.turn is None and not agent.unread for agent in state.agents.values())
        return idle and self.due(state, kernel, was_down=was_down) is None

    def waits_for_downtime(self, state: State, *, was_down: bool) -> bool:
        """Whether the lead goes on only after a time in which no process runs."""
        lead = state.agents.get(AgentId(LEAD))
        begun = sum(text.startswith("[turn ") for text in prompts_of(lead)) if lead else 0
        return self.downtime >= 0 and not was_down and begun == self.downtime + 1

    def wants_power_cut(self, kernel: Kernel) -> bool:
        """Whether a command runs during which the power fails."""
        return any("CUT" in job.command and kernel.blocks(name) for name, job in kernel.jobs.items())

    def _added(self, member: Member, state: State) -> AgentAdded:
        lead = state.agents[AgentId(LEAD)].added
        return AgentAdded(
            AgentId(member.id), "worker", "scripted", "plan", f"You are {member.id}.", tool_specs(),
            f"{lead.root}/{member.folder}",
        )  # fmt: skip


def _counts(message: dict) -> bool:
    content = message.get("content") or ""
    return message["role"] == "assistant" or (
        message["role"] == "user" and any(text in content for text in UNCOMMITTED)
    )


def _answer(question: Question) -> Command:
    command = str(question.facts.command)
    if "HALT" in command:
        return Interrupt(to=question.agent)
    denied = "DENY" in command
    return AnswerApproval(question.id, "deny" if denied else "allow", "not that one" if denied else "")


def prompts_of(agent: Agent) -> list[str]:
    """Everything that the person has said to an agent."""
    turns = (*agent.turns, agent.turn) if agent.turn else agent.turns
    sent = [message for turn in turns for messages in turn.sent for message in messages]
    said = [str(message.text) for message in sent if isinstance(message, UserMessage) and not message.label]
    return said + [str(entry.text) for entry in agent.unread]


# --- making plans -------------------------------------------------------------------------------------------------


class Maker:
    """Draws one agent's turns; keeps what its files will hold, so that edits fit."""

    def __init__(self, dice: random.Random, id: str, folder: str) -> None:
        self.dice = dice
        self.id = id
        self.folder = folder
        self.values = [0] * 90
        self.small = self.latin = self.secret = 0
        self.count = 0

    def files(self) -> dict[str, bytes]:
        place = f"{self.folder}/" if self.folder else ""
        lines = "".join(f"item {i} = 0\n" for i in range(len(self.values)))
        return {
            f"{place}code.py": lines.encode(),
            f"{place}small.txt": b"small 0\n",
            f"{place}linked.txt": b"linked 0\n" * 3,
            f"{place}known.txt": b"as it was\n",
            f"{place}latin.txt": b"caf\xe9 0\n" + b"caf\xe9 \xff\n" * 400,
            f"{place}secret.txt": f"key = {SECRET} 0\n".encode(),
            f"{place}ran.txt": b"",
        }

    def links(self) -> dict[str, str]:
        place = f"{self.folder}/" if self.folder else ""
        return {f"{place}twin.txt": f"{place}linked.txt"}

    def turn(self, number: int, kinds: list[str]) -> Turn:
        steps = [step for kind in kinds for step in getattr(self, f"make_{kind}")()]
        if not kinds or kinds[-1] not in ENDING:
            steps.append(Step(answer("Done with " + self.token())))
        return Turn(f"[turn {number} of {self.id}] Go on.", tuple(steps))

    def token(self) -> str:
        self.count += 1
        return f"{self.id}-{self.count}"

    # Each returns the steps of one kind.

    def make_reads(self) -> Iterator[Step]:
        yield Step(asks(call("read", path="code.py", from_line=1, lines=5), call("read", path="small.txt"),
                        call("read", path="absent.txt")))  # fmt: skip

    def make_known(self) -> Iterator[Step]:
        yield Step(asks(call("read", path="known.txt")))

    def make_edit(self) -> Iterator[Step]:
        yield Step(asks(self._edit("code.py")))

    def make_edits(self) -> Iterator[Step]:
        yield Step(asks(self._edit("code.py"), self._edit("code.py"), call("read", path="code.py", lines=3)))

    def make_many(self) -> Iterator[Step]:
        self.small += 1
        edits = [
            self._item(),
            {"path": "small.txt", "old": f"small {self.small - 1}", "new": f"small {self.small}"},
            {"path": "linked.txt", "old": f"linked {self.small - 1}", "new": f"linked {self.small}", "all": True},
        ]
        yield Step(asks(call("edit", path="code.py", edits=edits)))

    def make_latin(self) -> Iterator[Step]:
        self.latin += 1
        yield Step(asks(self._replace("latin.txt", f" {self.latin - 1}\n", f" {self.latin}\n")))

    def make_secret(self) -> Iterator[Step]:
        self.secret += 1
        old, new = (f"key = {MASKED} {number}" for number in (self.secret - 1, self.secret))
        yield Step(asks(call("read", path="secret.txt"), self._replace("secret.txt", old, new),
                        call("shell", command=f"echo {self.token()} {MASKED} >>ran.txt; echo {MASKED}")))  # fmt: skip

    def make_create(self) -> Iterator[Step]:
        name = f"new/{self.token()}/made.txt"
        yield Step(asks(call("write", path=name, content=f"made {name}\n")))
        yield Step(asks(call("write", path=name, content=f"made {name} again\n" * self.dice.choice((1, 200)))))

    def make_shell(self) -> Iterator[Step]:
        yield Step(asks(*(self._shell() for _ in range(self.dice.choice((1, 1, 2))))))

    def make_output(self) -> Iterator[Step]:
        yield Step(asks(call("shell", command=f"echo {self.token()} >>ran.txt; seq 1 700; exit 3")))

    def make_mixed(self) -> Iterator[Step]:
        yield Step(asks(call("read", path="small.txt"), self._shell(), self._edit("code.py"), self._todo()))

    def make_todo(self) -> Iterator[Step]:
        yield Step(asks(self._todo()))

    def make_broken(self) -> Iterator[Step]:
        calls = [
            call("nonsense", path="x"), ScriptedCall("read", '{"path": '), call("shell", command="rm -r everything"),
            call("edit", path="code.py", edits=[{"old": "not in there", "new": "x"}]),
        ]  # fmt: skip
        yield Step(asks(*self.dice.sample(calls, 3)))

    def make_denied(self) -> Iterator[Step]:
        yield Step(asks(call("shell", command=f"echo DENY {self.token()} >>ran.txt"), self._shell()))

    def make_empty(self) -> Iterator[Step]:
        yield Step(answer(""))

    def make_cut_text(self) -> Iterator[Step]:
        yield Step(answer(f"Half of {self.token()}", stop_reason="length"))

    def make_truncated(self) -> Iterator[Step]:
        broken = call("shell", command=f"echo never {self.token()} >>ran.txt")
        yield Step(answer("", calls=(broken,), stop_reason="length"))

    def make_contradiction(self) -> Iterator[Step]:
        yield Step(answer("I call it now", stop_reason="tool_calls"))

    def make_fault(self) -> Iterator[Step]:
        fault = self.dice.choice((
            answer("", status=429, headers={"retry-after": "0"}), answer("", status=429), answer("", status=503),
        ))  # fmt: skip
        yield Step(asks(self._todo()), faults=(fault,))

    def make_lost(self) -> Iterator[Step]:
        yield Step(asks(self._todo()), faults=(answer("A long enough text to be cut", cut_after_bytes=150),))

    def make_long(self) -> Iterator[Step]:
        yield Step(asks(self._todo(), text=f"{self.token()} " + "word and more " * 240))

    def make_queued(self) -> Iterator[Step]:
        yield Step(asks(self._todo()), gate="prompt", extra=f"By the way, {self.token()}.")

    def make_idle(self) -> Iterator[Step]:
        yield Step(asks(self._todo()), gate="mark")

    def make_unknown(self) -> Iterator[Step]:
        yield Step(asks(call("shell", command=f"echo CUT-{self.token()} >>ran.txt; {BLOCKS}")))

    def make_interrupt(self) -> Iterator[Step]:
        yield Step(answer("It never comes"), gate="interrupt")

    def make_halt(self) -> Iterator[Step]:
        yield Step(asks(call("shell", command=f"echo HALT-{self.token()} >>ran.txt"), self._todo()))

    def make_stopped(self) -> Iterator[Step]:
        yield Step(asks(call("shell", command=f"echo {self.token()} >>ran.txt; {BLOCKS}"), self._todo()))
        yield Step(answer("It never comes"), gate="interrupt")  # asked for only if the command was cut off before

    def _shell(self) -> ScriptedCall:
        token = self.token()
        end = self.dice.choice(("", "", "; exit 3"))
        return call("shell", command=f"echo {token} >>ran.txt; echo said {token}{end}")

    def _todo(self) -> ScriptedCall:
        return call("todo", items=[{"text": self.token(), "state": self.dice.choice(("open", "doing", "done"))}])

    def _item(self) -> dict[str, object]:
        at = self.dice.randrange(len(self.values))
        self.values[at] += 1
        return {"old": f"item {at} = {self.values[at] - 1}\n", "new": f"item {at} = {self.values[at]}\n"}

    def _replace(self, path: str, old: str, new: str) -> ScriptedCall:
        return call("edit", path=path, edits=[{"old": old, "new": new}])

    def _edit(self, path: str) -> ScriptedCall:
        return call("edit", path=path, edits=[self._item() for _ in range(self.dice.choice((1, 2)))])


ENDING = {"interrupt", "halt", "stopped"}
"""Kinds with which a turn ends."""
FLAWED = {"empty", "cut_text", "truncated", "contradiction"}
PLAIN = [
    "reads", "edit", "edits", "many", "create", "shell", "shell", "output", "mixed", "todo", "broken", "denied",
    "fault", "latin", "secret", "long", "queued", "lost",
]  # fmt: skip


def answer(text: str, **given: object) -> ScriptedAnswer:
    return ScriptedAnswer(text, **{"usage": USAGE, "chunk_chars": 700, **given})


def asks(*calls: ScriptedCall, text: str = "") -> ScriptedAnswer:
    return answer(text, calls=calls)


def call(name: str, **arguments: object) -> ScriptedCall:
    return ScriptedCall(name, arguments)


def draw_kinds(dice: random.Random, count: int, mode: str) -> list[str]:
    """Kinds of a turn's steps: no two flawed answers after one another, an ending one only at the end."""
    kinds: list[str] = []
    for _ in range(count):
        flawed = kinds and kinds[-1] in FLAWED
        kinds.append(dice.choice(PLAIN) if flawed or dice.random() < 0.8 else dice.choice(sorted(FLAWED)))
    if dice.random() < 0.3:
        kinds.append(dice.choice(sorted(ENDING - ({"halt"} if mode == "full" else set()))))
    return kinds


def make_plan(seed: int, *, members: int = 0, kinds: list[list[str]] | None = None, mode: str = "") -> Plan:
    """A session of 1 to 3 agents. `kinds`: the lead's turns, instead of drawn ones."""
    dice = random.Random(seed)
    mode = mode or dice.choice(("edits", "edits", "full", "ask"))
    count = members or dice.choice((1, 1, 2, 3))
    made: list[Member] = []
    files: dict[str, bytes] = {"AGENTS.md": b"Be brief.\n"}
    links: dict[str, str] = {}
    downtime = -1
    for number in range(count):
        id, folder = (LEAD, "") if number == 0 else (f"w{number}", f"w{number}")
        maker = Maker(dice, id, folder)
        files |= maker.files()
        links |= maker.links()
        drawn = kinds if kinds is not None and number == 0 else None
        if drawn is None:
            drawn = [
                draw_kinds(dice, dice.choice((1, 2, 3)), mode) for _ in range(dice.choice((1, 2)) if count > 1 else 2)
            ]
            if number == 0 and dice.random() < 0.3:
                drawn[0].insert(0, "known")
        if number == 0 and "known" in drawn[0] and len(drawn) > 1:
            downtime = 0
        made.append(Member(id, folder, tuple(maker.turn(i, each) for i, each in enumerate(drawn))))
    deadline = "2099-01-01T00:00:00.000000Z" if dice.random() < 0.2 else ""
    return Plan(seed, mode, tuple(made), files, links, downtime, dice.random() < 0.5, deadline)


EVERYTHING = [
    ["known", "shell", "idle", "unknown", "long", "stopped"],
    ["reads", "many", "create", "denied", "broken", "empty", "fault", "lost", "queued", "output", "latin", "secret"],
]
"""Turns in which every type of event is written."""


def everything() -> Plan:
    return make_plan(0, members=1, kinds=EVERYTHING, mode="edits")
