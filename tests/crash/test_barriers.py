"""Nothing begins, and nothing is told, before what it follows from is durable; and nobody else waits for that."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pieria.app.binding import tool_specs
from pieria.app.session import Front, Ground, Session, Setup, begin, real_world
from pieria.core.commands import Configure, SubmitPrompt
from pieria.core.events.session import AgentAdded, SettingsApplied
from pieria.core.ports import Answer, AnswerCall
from pieria.core.values import AgentId
from pieria.core.view import outcome
from pieria.models.script import parse_script
from pieria.models.scripted_server import ScriptedServer
from pieria.store.disk import Disk

DELAY_S = 0.3
TRACED = "trace=write,sendto,fdatasync,fsync,rename,renameat2"
WORK = [
    {"calls": [{"name": "shell", "arguments": {"command": "echo one >mark.txt"}}]},
    {
        "calls": [
            {"name": "edit", "arguments": {"path": "a.txt", "edits": [{"old": "item 0", "new": "item 1"}]}},
            {"name": "write", "arguments": {"path": "new/b.txt", "content": "b\n"}},
        ]
    },
    {"text": "done"},
]
CALL = re.compile(r"^(\d+) +(\d+\.\d+) (.*)$")


class Served:
    """A scripted server in a thread of its own."""

    def __init__(self, script: list) -> None:
        self._loop = asyncio.new_event_loop()
        self._server = ScriptedServer(parse_script(msgspec.json.encode(script)))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def serve() -> Iterator[Callable[[list], str]]:
    made: list[Served] = []

    def start(script: list) -> str:
        made.append(Served(script))
        return made[-1].url

    yield start
    for served in made:
        served.close()


def traced(folder: Path, url: str, *options: str) -> tuple[list[dict], list[tuple[str, float, str]]]:
    """Run the program under strace; return the records it printed and its calls: pid, time, words."""
    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("item 0\n")
    trace = folder / "trace"
    command = [
        "strace", "-f", "-y", "-T", "-ttt", "-s", "60", "-o", str(trace), *options,
        sys.executable, "-m", "pieria", "exec", "--json", "--model", "m", "--base-url", url, "--mode", "full",
        "--cwd", str(work), "go on",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    calls = [found.groups() for line in trace.read_text().splitlines() if (found := CALL.match(line))]
    return [json.loads(line) for line in done.stdout.splitlines()], [(pid, float(at), what) for pid, at, what in calls]


def synced(calls: list[tuple[str, float, str]], name: str) -> list[tuple[float, float]]:
    """When each sync began and when it had returned."""
    found = []
    begun: dict[str, float] = {}
    for pid, at, what in calls:
        if what.startswith(f"{name}(") and what.endswith("<unfinished ...>"):
            begun[pid] = at
        elif what.startswith(f"{name}("):
            found.append((at, at + float(what.rpartition("<")[2].rstrip(">"))))
        elif what.startswith(f"<... {name} resumed") and pid in begun:
            found.append((begun.pop(pid), at))
    return found


@pytest.mark.needs_strace
def test_nothing_goes_out_before_the_sync_that_covers_its_record_has_returned(
    home: Path, tmp_path: Path, serve: Callable[[list], str]
) -> None:
    inject = f"inject=fdatasync:delay_enter={int(DELAY_S * 1e6)}"
    records, calls = traced(tmp_path, serve(WORK), "-e", TRACED, "-e", inject)
    syncs = synced(calls, "fdatasync")
    named = next(end for begin, end in synced(calls, "fsync"))  # the folder's, after the log got its name
    written = {int(m[1]): at for _, at, what in calls if (m := re.search(r'"\{\\"seq\\":(\d+),\\"prev', what))}
    told = {seq: at for seq, at in written.items() if seq < len(records)}
    done = {seq: max(named, next(end for start, end in syncs if start > at)) for seq, at in told.items()}
    assert sorted(done) == list(range(len(records)))
    assert all(done[seq] - written[seq] > DELAY_S for seq in done), "the syncs are slow, as told"

    printed = {int(m[1]): at for _, at, what in calls if (m := re.search(r'"\{\\"seq\\":(\d+),\\"epoch', what))}
    assert sorted(printed) == sorted(done)
    assert [seq for seq in done if printed[seq] < done[seq]] == []

    def seqs(type: str) -> list[int]:
        return [record["seq"] for record in records if record["type"] == type]

    sent = [at for _, at, what in calls if what.startswith("sendto(") and '"POST ' in what]
    assert len(sent) == len(WORK)
    assert [at > done[seq] for at, seq in zip(sent, seqs("step.started"), strict=True)] == [True] * len(WORK)

    command, edit, write = seqs("tool.started")
    marked = next(at for _, at, what in calls if what.startswith("write(") and "mark.txt>" in what)
    assert marked > done[seqs("tool.spawned")[0]] >= done[command]
    renamed = {m[1]: at for _, at, what in calls if (m := re.match(r'renameat2\(.*"/.*/([ab]\.txt)"', what))}
    assert renamed["a.txt"] > done[edit]
    assert renamed["b.txt"] > done[write]


def shell_session(count: int) -> list:
    asks = [{"calls": [{"name": "shell", "arguments": {"command": f"echo {i}"}}]} for i in range(count)]
    return [*asks, {"text": "done"}]


@pytest.mark.needs_strace
def test_a_model_call_with_a_command_costs_exactly_two_syncs(
    home: Path, tmp_path: Path, serve: Callable[[list], str]
) -> None:
    counts = []
    for count in (2, 22):
        folder = tmp_path / str(count)
        folder.mkdir()
        _, calls = traced(folder, serve(shell_session(count)), "-e", "trace=fdatasync")
        counts.append(len(synced(calls, "fdatasync")))
    assert counts[1] - counts[0] == 20 * 2


class HeldDisk(Disk):
    """A disk whose syncs wait while it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.free.set()
        self.waits = threading.Event()

    def fdatasync(self, fd):
        self.waits.set()
        assert self.free.wait(30)
        super().fdatasync(fd)


class HandFedModel:
    """A model whose answers a test gives piece by piece."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.words: asyncio.Queue[str | Answer] = asyncio.Queue()

    async def stream(self, body, on_text):
        self.asked.set()
        while isinstance(piece := await self.words.get(), str):
            on_text(piece)
        return piece

    async def close(self):
        pass


async def test_one_agents_barrier_does_not_hold_anothers_stream(tmp_path: Path) -> None:
    work, disk, heard = tmp_path / "work", HeldDisk(), asyncio.Queue()
    work.mkdir()
    models = {"lead": HandFedModel(), "second": HandFedModel()}

    def world(id, log, setup):
        return replace(real_world(id, log, setup), model=lambda added: models[added.id])

    setup = Setup(
        cwd=str(work), root=str(work), model="scripted:x", endpoint="", settings=SettingsApplied("full"),
        sessions=str(tmp_path / "sessions"), environ={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    front = Front(
        record=lambda _: None,
        durable=lambda _: None,
        progress=lambda agent, text: heard.put_nowait((agent, text)),
        notice=lambda _: None,
    )
    session: Session = begin(setup, front, ground=Ground(world, disk))
    second = AgentAdded(AgentId("second"), "worker", "scripted", "x", "You help.", tool_specs(), str(work))
    await session.submit(Configure(second))
    for id, model in models.items():
        await session.submit(SubmitPrompt(AgentId(id), "Go on."))
        await model.asked.wait()

    disk.free.clear()
    disk.waits.clear()
    asked = AnswerCall("shell", json.dumps({"command": "echo one >mark.txt"}))
    models["lead"].words.put_nowait(Answer("", calls=(asked,), stop_reason="tool_calls"))
    await asyncio.to_thread(disk.waits.wait, 30)
    assert session.loop.state.agents[AgentId("lead")].turn.calls[0].phase == "running", "recorded, and not durable yet"
    for piece in ("one ", "two ", "three"):
        models["second"].words.put_nowait(piece)
        assert await heard.get() == ("second", piece)
    assert session.log.durable < session.loop.state.seq
    assert not (work / "mark.txt").exists()

    disk.free.set()
    models["second"].words.put_nowait(Answer("one two three", stop_reason="stop"))
    models["lead"].words.put_nowait(Answer("done", stop_reason="stop"))
    await session.loop.rest()
    assert (work / "mark.txt").read_text() == "one\n"
    await session.close(outcome(session.loop.state))
