"""The proof obligations: which machines are found after a crash, and what must come of each.

P1: the process is killed at any byte of the log and any step. P2: and again while it recovers. P3: the power is cut, and
what was not synced is lost in part. P5: someone changed the log.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator

import msgspec

from pieria.core.events import TABLE

from tests.crash.judge import Differs, Ended, compare, end_of
from tests.crash.life import FastLoop
from tests.crash.living import between, live, to_the_end
from tests.crash.machine import Machine, Moment
from tests.crash.medium import worn
from tests.crash.plans import EVERYTHING, Plan, make_plan


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

    def __init__(self, played: Played, root: str, loop: FastLoop, dice: random.Random) -> None:
        self.played = played
        self.dice = dice
        self._loop = loop
        self._machine = Machine(root, played.plan)
        # The workspace's path is part of what models are told: plans are played and proved in the same one.
        assert played.path.startswith(f"{root}/")

    def killed(self, spot: Spot) -> None:
        """P1: the process died there; a command that was running may have ended meanwhile, or not."""
        self._find(spot)
        if self.dice.random() < 0.5:
            self._machine.kernel.finish()
        self._finish(spot, power=False)

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


def trying(tally: Tally, name: str, tries: Iterator[tuple[str, Callable[[], object]]], until: float) -> None:
    """Try machines until there is no more time; keep what fails."""
    began = time.monotonic()
    for what, attempt in tries:
        if time.monotonic() > until:
            break
        tally.tried += 1
        try:
            attempt()
            tally.passed += 1
        except Exception as problem:  # noqa: BLE001  (whatever went wrong is a failure of this state)
            where = traceback.extract_tb(problem.__traceback__)[-1]
            tally.failures.append(f"{name} {what}: {type(problem).__name__}: {problem} ({where.name}:{where.lineno})")
    tally.seconds += time.monotonic() - began
