"""The proof obligations: which machines are found after a crash, and what must come of each.

P1: the process is killed at any byte of the log and any step. P2: and again while it recovers. P3: the power is cut,
and what was not synced is lost in part. P5: someone changed the log.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator

import msgspec

from pieria.core.events import TABLE
from pieria.core.record import decode, type_name
from pieria.store.open import open_log
from pieria.store.paths import session_of
from tests.crash import tamper
from tests.crash.judge import Differs, Ended, compare, end_of
from tests.crash.life import FastLoop
from tests.crash.living import between, live, to_the_end
from tests.crash.machine import Machine, Moment
from tests.crash.medium import worn
from tests.crash.plans import Plan, everything, make_plan
from tests.crash.real import RealMachine

Try = tuple[str, Callable[[], object]]


class Played(msgspec.Struct, frozen=True):
    """A plan that came to its end undisturbed: its moments, its log, and its end to compare with."""

    plan: Plan
    moments: list[Moment]
    log: bytes
    path: str
    end: Ended


class Spot(msgspec.Struct, frozen=True):
    """A machine to be found: after moment `at`, with `cut` bytes of the log."""

    at: int
    cut: int


class Tally(msgspec.Struct):
    """What a proof has tried."""

    tried: int = 0
    passed: int = 0
    seconds: float = 0.0
    failures: list[str] = []


def play(plan: Plan, root: str, loop: FastLoop) -> Played:
    """Live a plan undisturbed, keeping every moment."""
    machine = Machine(root, plan)
    machine.watch()
    for life in to_the_end(machine, loop):
        if life.troubles:
            raise Differs(f"undisturbed: {life.troubles}")
    assert machine.moments is not None
    with open(machine.log, "rb") as file:
        log = file.read()
    return Played(plan, machine.moments, log, machine.log, end_of(machine))


def spots(played: Played) -> tuple[list[Spot], list[Spot]]:
    """Every step as a spot, and every byte of every record in between."""
    steps, inside = [], []
    size = 0
    for at, moment in enumerate(played.moments):
        if not moment.named:
            size = moment.size
            continue
        if moment.size > size and at:
            inside += [Spot(at - 1, cut) for cut in range(size + 1, moment.size) if played.moments[at - 1].named]
        size = moment.size
        steps.append(Spot(at, size))
    return steps, inside


class Proof:
    """Tries machines one after another, each in the same folder, and judges what comes of them."""

    def __init__(self, played: Played, root: str, loop: FastLoop) -> None:
        # The workspace's path is part of what models are told: plans are played and proved in the same one.
        assert played.path.startswith(f"{root}/")
        self.played = played
        self.dice = random.Random(played.plan.seed)
        self.steps, self.inside = spots(played)
        self._loop = loop
        self._root = root
        self._machine = Machine(root, played.plan)
        self._real: tuple[int, Ended] | None = None

    def tries(self, proof: str) -> Iterator[Try]:
        """Every machine of one proof, in a drawn order."""
        match proof:
            case "P1":
                first = self._one_of_each_type()
                rest = self.dice.sample(self.inside, min(len(self.inside), 50_000))
                for spot in (*first, *self.dice.sample(self.steps, len(self.steps)), *rest):
                    yield self._name(spot), lambda spot=spot: self.killed(spot)
            case "P1 opened":
                for spot in self.dice.sample(self.inside, len(self.inside)):
                    yield self._name(spot), lambda spot=spot: self.opened(spot)
            case "P1 real":
                while not is_simulated_only(self.played.plan):
                    stops = [self.dice.random() for _ in range(self.dice.choice((1, 1, 2, 3)))]
                    yield f"plan {self.played.plan.seed}, {stops}", lambda stops=stops: self.killed_for_real(stops)
            case "P2":
                while True:
                    spot = self.dice.choice(self.steps if self.dice.random() < 0.7 else self.inside)
                    yield self._name(spot), lambda spot=spot: self.killed_again(spot)
            case "P3":
                while True:
                    at = self.dice.randrange(len(self.played.moments))
                    yield self._name(Spot(at, 0)), lambda at=at: self.power_cut(at)
            case "P5":
                while True:
                    kind = self.dice.choice(list(tamper.KINDS))
                    yield kind, lambda kind=kind: self.tampered(kind)

    def _name(self, spot: Spot) -> str:
        plan = self.played.plan
        return f"plan {plan.seed} at {spot.at} ({self.played.moments[spot.at].step}), {spot.cut} bytes"

    def _one_of_each_type(self) -> list[Spot]:
        """A cut inside one record of each type."""
        ends: dict[str, tuple[int, int]] = {}
        start = 0
        for line in self.played.log.split(b"\n")[:-1]:
            end = start + len(line) + 1
            ends.setdefault(type_name(decode(line + b"\n")), (start, end))
            start = end
        by_cut = {spot.cut: spot for spot in self.inside}
        cuts = [self.dice.randrange(start + 1, end) for start, end in ends.values()]
        return [by_cut[cut] for cut in cuts if cut in by_cut]

    def killed(self, spot: Spot) -> None:
        """P1: the process died there; a command that was running may have ended meanwhile, or not."""
        self._find(spot)
        if self.dice.random() < 0.5:
            self._machine.kernel.finish()
        self._finish(spot, power=False)

    def opened(self, spot: Spot) -> None:
        """P1, for every byte: opening sets the torn record aside, and hands out all before it."""
        whole = self.played.log[: spot.cut].rfind(b"\n") + 1
        self._machine.put_back(self.played.moments[spot.at], self.played.log[: spot.cut], path=self.played.path)
        found: list[object] = []
        opened = open_log(self.played.path, clock=self._machine.clock, take=found.append)
        if opened.log is None or opened.torn is None:
            raise Differs("not taken for a torn tail")
        opened.log.drop()
        if len(found) != self.played.log[:whole].count(b"\n") or opened.torn.bytes != spot.cut - whole:
            raise Differs(f"{len(found)} records and {opened.torn.bytes} torn bytes")
        with open(self.played.path, "rb") as file, open(opened.torn.copy, "rb") as copy:
            if file.read() + copy.read() != self.played.log[: spot.cut]:
                raise Differs("bytes were lost")

    def tampered(self, kind: str) -> None:
        """P5: someone changed the log of the session that came to its end."""
        lines = [line + b"\n" for line in self.played.log.split(b"\n")[:-1]]
        changed = tamper.KINDS[kind](self.dice, lines)
        tamper.check(self.played.log, changed, f"{self._root}/t", session_of(self.played.path))

    def killed_with(self, spot: Spot, *, ran: dict[str, int]) -> None:
        """As `killed`, on a machine whose commands were begun so often: what the judge must see."""
        self._find(spot)
        self._machine.kernel.ran = ran
        self._finish(spot, power=False)

    def killed_for_real(self, stops: list[float]) -> None:
        """P1 and P2 with real commands: lived from the beginning, and killed at these parts of what is left to do."""
        plan = self.played.plan
        if self._real is None:
            machine = RealMachine(self._root, plan)
            lives = to_the_end(machine, self._loop)
            self._real = sum(life.count for life in lives), end_of(machine)
        left, end = self._real
        machine = RealMachine(self._root, plan)
        for part in stops:
            life = live(machine, self._loop, stop_at=max(1, int(left * part)))
            self._check(life)
            if not life.dead:
                break
            left -= life.count
        for life in to_the_end(machine, self._loop):
            self._check(life)
        compare(end, end_of(machine), power=False)

    def killed_again(self, spot: Spot) -> None:
        """P2: and then it dies 1 to 3 times more, early in what follows."""
        self._find(spot)
        for _ in range(self.dice.choice((1, 1, 2, 3))):
            stop = self.dice.choice((self.dice.randrange(1, 8), self.dice.randrange(1, 40)))
            life = live(self._machine, self._loop, stop_at=stop)
            self._check(life)
            between(self._machine)
            if not life.dead:
                break
        self._finish(spot, power=False)

    def power_cut(self, at: int) -> None:
        """P3: what was synced is there, and any part of the rest."""
        moment = self.played.moments[at]
        if not moment.name_synced:
            if moment.durable >= 0:
                raise Differs("records counted as durable before the log's name was")
            return
        if self.played.log[: moment.synced].count(b"\n") <= moment.durable:
            raise Differs(f"record {moment.durable} counted as durable when only {moment.synced} bytes were synced")
        kept, suffix = self.played.log[: moment.synced], self.played.log[moment.synced : moment.size]
        image = moment.files.after_power_cut(self.dice)
        log = kept + self.dice.choice((suffix, worn(self.dice, suffix), worn(self.dice, suffix), b""))
        if self.dice.random() < 0.2:
            log += bytes(self.dice.randrange(1, 9000))
        self._machine.put_back(moment, log, path=self.played.path, files=image)
        self._machine.kernel.reboot()
        self._finish(Spot(at, moment.synced), power=True)

    def _find(self, spot: Spot) -> None:
        moment = self.played.moments[spot.at]
        self._machine.put_back(moment, self.played.log[: spot.cut], path=self.played.path)
        between(self._machine)

    def _finish(self, spot: Spot, *, power: bool) -> None:
        """Go on to the end and compare it with the undisturbed one."""
        for life in to_the_end(self._machine, self._loop):
            self._check(life)
        with open(self._machine.log, "rb") as file:
            log = file.read()
        kept = self.played.log[: spot.cut].rfind(b"\n") + 1
        if self._machine.log != self.played.path:
            if b'"type":"agent.added"' in self.played.log[:kept]:
                raise Differs("a session that had begun was not taken up")
        elif log[:kept] != self.played.log[:kept]:
            raise Differs("what was in the log is not in it any more")
        compare(self.played.end, end_of(self._machine), power=power)

    def _check(self, life) -> None:
        if life.troubles:
            raise Differs("; ".join(life.troubles))


SHARES = {"P1": 0.3, "P1 opened": 0.1, "P1 real": 0.15, "P2": 0.2, "P3": 0.15, "P5": 0.1}
"""How much of the time each proof gets."""


class Campaign:
    """Plays plans one after another and proves each; keeps a tally for every proof."""

    def __init__(self, root: str, *, only: str = "") -> None:
        self.tallies = {name: Tally() for name in SHARES if name.startswith(only)}
        self.types: set[str] = set()
        self.plans = 0
        self._root = root
        self._loop = FastLoop()
        self._whole = sum(SHARES[name] for name in self.tallies)

    def prove(self, plan: Plan, *, seconds: float, most: int = 10**9) -> None:
        """Spend some time on one plan, and on each proof no more than `most` machines."""
        self.plans += 1
        try:
            played = play(plan, self._root, self._loop)
        except Exception as problem:  # (an undisturbed session that fails is a failure of its own)
            next(iter(self.tallies.values())).failures.append(f"plan {plan.seed} undisturbed: {_words(problem)}")
            return
        self.types |= set(played.end.types)
        proof = Proof(played, self._root, self._loop)
        for name, tally in self.tallies.items():
            self._try(name, tally, proof.tries(name), seconds * SHARES[name] / self._whole, most)

    def _try(self, name: str, tally: Tally, tries: Iterator[Try], seconds: float, most: int) -> None:
        began = time.monotonic()
        for count, (what, attempt) in enumerate(tries):
            if time.monotonic() - began > seconds or count >= most:
                break
            tally.tried += 1
            try:
                attempt()
                tally.passed += 1
            except Exception as problem:  # (whatever goes wrong is a failure of this machine)
                tally.failures.append(f"{name} {what}: {_words(problem)}")
        tally.seconds += time.monotonic() - began

    def close(self) -> None:
        """Let go of the loop and its threads."""
        self._loop.close()

    def missing(self) -> list[str]:
        """Types of events that no session has written, so that nothing was cut there."""
        return sorted({row.name for row in TABLE} - self.types)


def _words(problem: Exception) -> str:
    where = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{type(problem).__name__}: {str(problem)[:2000]} ({where.name}, line {where.lineno})"


def is_simulated_only(plan: Plan) -> bool:
    """Whether it needs a power cut, which a real machine can't be given here."""
    return any(
        "CUT" in str(call.arguments)
        for member in plan.members
        for turn in member.turns
        for step in turn.steps
        for call in step.answer.calls
    )


def plans(seed: int) -> Iterator[Plan]:
    """The plan that writes every type of event, then drawn ones."""
    yield everything()
    while True:
        seed += 1
        yield make_plan(seed)
