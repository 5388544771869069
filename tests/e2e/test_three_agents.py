"""Three agents at once in a real process that is killed, with real files, real commands and a model behind a socket."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from pieria.core.events.calls import ToolFinished, ToolInterrupted
from pieria.core.events.model import StepLost, StepStarted
from pieria.core.record import Record
from pieria.models.script import Received, parse_script
from pieria.models.scripted_server import ScriptedServer
from pieria.store.open import read_log
from tests.e2e.three_agents import NAMES

ROOT = Path(__file__).resolve().parents[2]
REQUESTS = 5
"""Of each agent, when nothing is lost."""


def folder_of(name: str) -> str:
    return "." if name == "lead" else name


def script_of(name: str) -> dict:
    """Each agent reads, runs a command of some length, edits several files, makes one, and runs another command."""

    def call(tool: str, **arguments: object) -> dict:
        return {"name": tool, "arguments": arguments}

    place = "" if name != "lead" else "./"
    edits = [
        {"path": f"{place}one.txt", "old": "item 0", "new": "item 1"},
        {"path": f"{place}two.txt", "old": "item 0", "new": "item 1"},
    ]
    slow = f"echo began >began.txt; sleep 0.5; echo {name} first >>ran.txt"
    answers = [
        {"calls": [call("read", path="one.txt"), call("shell", command=slow)], "text": "I look."},
        {"calls": [call("edit", edits=edits)], "delay_ms": 150},
        {"calls": [call("write", path="new/made.txt", content=f"made by {name}\n")]},
        {"calls": [call("shell", command=f"echo {name} second >>ran.txt; exit 3")], "delay_ms": 50},
        {"text": f"{name} is done", "delay_ms": 100},
    ]
    return {"when": f"[{name}]", "answers": answers}


class Served:
    """The model's server, in a thread of its own, so that it outlives the program."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        scripts = {"scripts": [script_of(name) for name in NAMES]}
        self._server = ScriptedServer(parse_script(msgspec.json.encode(scripts)))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = self._do(self._server.start())

    @property
    def received(self) -> list[Received]:
        return self._server.received

    def wait_for(self, count: int) -> None:
        self._do(self._server.asked(count))

    def close(self) -> None:
        self._do(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


class Place:
    """A workspace with three folders, and the sessions of one program."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.sessions = folder / "sessions"
        self.served = Served()
        for name in NAMES:
            (self.work / folder_of(name)).mkdir(parents=True, exist_ok=True)
            for file in ("one.txt", "two.txt"):
                (self.work / folder_of(name) / file).write_text("item 0\n")

    @property
    def log(self) -> str:
        found = sorted(self.sessions.glob("*.jsonl"))
        return str(found[-1]) if found else ""

    def start(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "tests.e2e.three_agents", str(self.sessions), str(self.work), self.served.url]
        return subprocess.Popen([*words, self.log] if self.log else words, cwd=ROOT)

    def until(self, claim: Callable[[], object]) -> None:
        """Wait for what another process does: there is no event for it."""
        end = time.monotonic() + 30
        while not claim():
            assert time.monotonic() < end, "it never came true"
            time.sleep(0.005)

    def pieria(self, *words: str) -> None:
        done = subprocess.run([sys.executable, "-m", "pieria", *words], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Iterator[Place]:
    made = Place(Path(os.path.realpath(tmp_path)))
    yield made
    made.served.close()


def kill_when_commands_run(place: Place) -> None:
    place.until(lambda: all((place.work / folder_of(name) / "began.txt").exists() for name in NAMES))


def kill_when_answers_are_awaited(place: Place) -> None:
    place.served.wait_for(len(NAMES) + 2)


def kill_while_edits_are_made(place: Place) -> None:
    place.until(lambda: any((place.work / folder_of(name) / "new/made.txt").exists() for name in NAMES))


def kill_at_once(place: Place) -> None:
    place.until(lambda: place.log)


MOMENTS = [kill_when_commands_run, kill_when_answers_are_awaited, kill_while_edits_are_made, kill_at_once]


@pytest.mark.parametrize(
    "moments",
    [*([each] for each in MOMENTS), MOMENTS[:3]],
    ids=["commands run", "answers are awaited", "edits are made", "at once", "three times"],
)
def test_three_agents_killed_in_the_middle_all_come_back_and_finish(place: Place, moments: list) -> None:
    for kill in moments:
        process = place.start()
        kill(place)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = place.start()
    assert process.wait(60) == 0

    for name in NAMES:
        folder = place.work / folder_of(name)
        assert (folder / "ran.txt").read_text() == f"{name} first\n{name} second\n", "each command ran once"
        assert [(folder / file).read_text() for file in ("one.txt", "two.txt")] == ["item 1\n"] * 2
        assert (folder / "new/made.txt").read_text() == f"made by {name}\n"
    assert [path.name for path in place.work.rglob(".pieria-*")] == []

    records: list[Record] = []
    os.close(read_log(place.log, take=records.append).texts.fd)
    assert not [record for record in records if isinstance(record.data, ToolInterrupted)], "commands outlive a kill"
    assert all(record.data.reason == "crash" for record in records if isinstance(record.data, StepLost))
    results = [record for record in records if isinstance(record.data, ToolFinished)]
    assert len(results) == len(NAMES) * 5
    asked = [record for record in records if isinstance(record.data, StepStarted)]
    assert {entry.sha256 for entry in place.served.received} <= {record.data.request.sha256 for record in asked}
    for name in NAMES:
        first = [record.data for record in asked if record.agent == name and record.data.attempt == 1]
        assert len(first) == REQUESTS

    place.pieria("log", "verify", place.log)
    place.pieria("replay", place.log)


def test_neither_turns_nor_the_runtime_know_a_role() -> None:
    """What an agent is for is a matter of its prompt and tools: the code that lets it live names none."""
    role = re.compile(r"\b(lead|scout|worker|reviewer|steward)s?\b", re.IGNORECASE)
    places = [ROOT / "src/pieria/core/turn.py", *sorted((ROOT / "src/pieria/runtime").glob("*.py"))]
    found = [f"{path.name}: {match[0]}" for path in places for match in role.finditer(path.read_text())]
    assert len(places) > 5
    assert found == []
