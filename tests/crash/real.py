"""Real commands under their real supervisors, on a machine whose process dies at a chosen step.

Such a machine can't be put back: a session is lived from its beginning, dies, and is taken up by a next life.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from pieria.app.session import Setup
from pieria.core.ports import Spawned
from pieria.store.paths import session_folder
from pieria.workspace.processes import Commands
from tests.crash.kernel import BLOCKS, Held
from tests.crash.life import Life
from tests.crash.machine import Machine
from tests.crash.plans import Plan


class Processes:
    """Stands where the simulated kernel does. It keeps nothing: the real one does."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self.jobs: dict[str, object] = {}
        self.ran: dict[str, int] = {}

    def held(self) -> Held:
        return Held({}, {}, 0, 0)

    def blocks(self, name: str) -> bool:
        """Whether a command waits for something that never comes: it has written its line, and has not ended."""
        for folder in self._root.glob(f"s/*/jobs/{name}"):
            command = (folder / "command").read_text() if (folder / "command").exists() else ""
            if command.endswith(BLOCKS) and not (folder / "rc").exists():
                token = command.split(" ", 2)[1]
                return any(token in path.read_text().splitlines() for path in self._root.glob("w/**/ran.txt"))
        return False

    def parent_died(self) -> None:
        """The real kernel has closed its gates already: see `CountedCommands.die`."""


class CountedCommands(Commands):
    """The real port; every call that does something is a step."""

    def __init__(self, life: Life, root: str, session: str, environ: dict[str, str]) -> None:
        super().__init__(root, session, base=environ, grace_s=0.3)
        self._life = life

    def spawn(self, job: str, command: str, *, cwd: str, timeout_s: float) -> Spawned:
        up = super().spawn
        return self._life.step(f"spawn {job}", lambda: up(job, command, cwd=cwd, timeout_s=timeout_s))

    def go(self, job: str) -> None:
        up = super().go
        self._life.covered(f"job {job}", f"the word to go for {job}")
        self._life.step(f"go {job}", lambda: up(job))

    def forget(self, job: str) -> None:
        up = super().forget
        self._life.step(f"forget {job}", lambda: up(job))

    def forget_others(self, kept: Collection[str]) -> None:
        up = super().forget_others
        self._life.step("forget others", lambda: up(kept))

    async def stop(self, spawned: Spawned) -> None:
        self._life.step(f"stop {spawned.job}", lambda: None)
        await super().stop(spawned)

    def die(self) -> None:
        """What the kernel does with a dead process: it closes its descriptors."""
        for held in self._jobs.values():
            held.close_gate()
            held.close_watch()
        self._jobs.clear()
        self.close()


class RealMachine(Machine):
    """A machine with real commands."""

    is_real = True

    def __init__(self, root: str, plan: Plan) -> None:
        super().__init__(root, plan)
        self.kernel = Processes(root)  # type: ignore[assignment]

    def left(self) -> list[str]:
        return [folder.name for folder in Path(self.root).glob("s/*/jobs/*")]

    def commands(self, life: Life, session: str, log: str, setup: Setup) -> CountedCommands:
        made = CountedCommands(life, os.path.join(session_folder(log), "jobs"), session, setup.environ)
        life.at_death = made.die
        return made
