"""A person's desk: a home, a repository, a model behind a socket, and the real program as a process of its own.

Invariant: whatever a test does, `look_over` holds each session's log against what the model's server received.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pieria.app.binding import ENCODERS
from pieria.core.record import Record
from pieria.models.script import Played, Player, Received, Script, parse_script, rendered
from pieria.models.scripted_server import ScriptedServer
from pieria.runtime.replay import Sent, replay
from pieria.store.open import read_log
from pieria.store.verify import verify

PIERIA = str(Path(sys.executable).parent / "pieria")
KEY = f"sk-e2e-{os.urandom(8).hex()}+/=42"
LIMIT_S = 40.0
UNPRIVILEGED = (
    sys.executable, "-I", "-S", "-c",
    (
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None)\n"
        "[libc.prctl(24, power, 0, 0, 0) for power in (0, 1, 2, 3)]\n"  # no CHOWN, DAC_*, FOWNER after the exec
        "os.execv(sys.argv[1], sys.argv[1:])"
    ),
)  # fmt: skip
"""Before a command: root's files stay root's, but permissions count for it as for anyone."""

Answer = Mapping[str, object]
T = TypeVar("T")
Json = dict[str, Any]


def say(text: str, **more: object) -> Answer:
    """A model's answer in words."""
    return {"text": text, **more}


def call(name: str, arguments: object = None, /, **fields: object) -> Json:
    """A tool call. `arguments` as text is sent as it is, broken or not."""
    return {"name": name, "arguments": fields if arguments is None else arguments}


def ask(*calls: Json, text: str = "", **more: object) -> Answer:
    """A model's answer that asks for tool calls."""
    return {"text": text, "calls": list(calls), **more}


def shell(command: str, **more: object) -> Json:
    return call("shell", command=command, **more)


class InOrder(Player):
    """Counts requests, not answers: what comes after an answer that did not count is another one."""

    def play(self, body: bytes) -> Played:
        super().play(body)
        (script,) = self._scripts
        number = min(len(self.received), len(script.answers)) - 1
        return rendered(script.answers[number], number=number, model="scripted", request_bytes=len(body))


class Servers:
    """One asyncio loop in a thread of its own, so that servers answer while a test waits for a process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="servers", daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine there and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass(frozen=True)
class Done:
    """How a process ended."""

    code: int
    out: bytes
    err: str
    wall_s: float

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def lines(self) -> list[Json]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.split(b"\n") if line]


class Log:
    """A session's log, read by nothing of ours but the standard library (but for `requests`)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name.removesuffix(".jsonl")

    @property
    def records(self) -> list[Json]:
        return [json.loads(line) for line in self.path.read_bytes().split(b"\n") if line]

    def of(self, *types: str) -> list[Json]:
        """The records of some types."""
        return [record for record in self.records if record["type"] in types]

    def data(self, kind: str) -> list[Json]:
        return [record["data"] for record in self.of(kind)]

    def types(self, *, but: Sequence[str] = ("blob", "mark", "step.partial")) -> list[str]:
        return [record["type"] for record in self.records if record["type"] not in but]

    def whole(self, text: object) -> str:
        """A recorded text, taken together from its blob records where it is long."""
        if isinstance(text, str):
            return text
        assert isinstance(text, dict)
        parts = {record["seq"]: record["data"] for record in self.of("blob")}
        first = parts[text["seq"]]
        return "".join(parts[text["seq"] + number].get("text", "") for number in range(first["parts"]))

    def results(self) -> dict[str, str]:
        """What the model is told of each call, by our id of the call."""
        ends = self.of("tool.finished", "tool.interrupted", "call.refused")
        return {end["data"]["call"]: self.whole(end["data"]["text"]) for end in ends}

    def requests(self) -> list[Json]:
        """Every request in order, as JSON: what went over the wire, byte for byte (see `look_over`)."""
        return [json.loads(sent.body) for sent in rebuilt(self.path)]

    def check(self) -> None:
        """Hold it against chain, pairing, contents and requests."""
        report = verify(str(self.path))
        assert report.ok, (self.path, report)

    def messages(self) -> list[Json]:
        """The messages of the last request."""
        found: list[Json] = self.requests()[-1]["messages"]
        return found


def reseal(path: Path, change: Callable[[int, bytes], bytes]) -> None:
    """Change a log's lines and make its chain whole again, as a forger would."""
    prev = b""
    sealed = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1]):
        body = change(number, line)[:-43]
        at = body.index(b'"prev":"') + 8
        body = body[:at] + (prev or body[at : at + 32]) + body[at + 32 :]
        prev = hashlib.sha256(body).hexdigest()[:32].encode()
        sealed.append(b'%s,"hash":"%s"}\n' % (body, prev))
    path.write_bytes(b"".join(sealed))


def rebuilt(path: Path) -> list[Sent]:
    records: list[Record] = []
    opened = read_log(str(path), take=records.append)
    sent: list[Sent] = []
    done = replay(records, opened.texts, ENCODERS, keep=sent)
    assert done.difference is None, done.difference
    assert done.not_rerun == 0
    return sent


@dataclass
class Desk:
    """What a test works with. `blank`: a repository with one commit and no file, to be copied.

    `spoilt`: logs that a test damaged; they are left out of the closing check.
    """

    base: Path
    servers: Servers
    blank: Path
    environ: dict[str, str] = field(default_factory=dict)
    spoilt: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    model: list[ScriptedServer] = field(default_factory=list)
    _begun: list[Going] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder in ("home", "repo"):
            (self.base / folder).mkdir()
        self.environ |= {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIERIA_MODEL": "chat:scripted",
            "PIERIA_API_KEY": KEY,
        }

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def repo(self) -> Path:
        return self.base / "repo"

    @property
    def sessions(self) -> Path:
        state = self.environ.get("XDG_STATE_HOME") or f"{self.home}/.local/state"
        return Path(state) / "pieria" / "sessions"

    # --- the model -----------------------------------------------------------------------------------------------

    def answers(self, *answers: Answer) -> ScriptedServer:
        """Start a model that gives these answers, one a step, and point the program at it."""
        return self._serve(parse_script(msgspec.json.encode(answers)))

    def answers_for(self, scripts: Mapping[str, Sequence[Answer]]) -> ScriptedServer:
        """Start a model that gives the answers of the first script whose words stand in the first prompt."""
        file = {"scripts": [{"when": when, "answers": answers} for when, answers in scripts.items()]}
        return self._serve(parse_script(msgspec.json.encode(file)))

    def _serve(self, scripts: tuple[Script, ...]) -> ScriptedServer:
        server = ScriptedServer(scripts)
        self.environ["PIERIA_BASE_URL"] = self.servers.do(server.start())
        self.model.append(server)
        return server

    def asked(self, count: int) -> list[Received]:
        """Wait until the latest model was asked so often."""
        server = self.model[-1]
        self.servers.do(asyncio.wait_for(server.asked(count), LIMIT_S))
        return server.received

    def in_order(self, *answers: Answer) -> ScriptedServer:
        """Start a model that gives the first answer to the first request, and so on, whatever it is asked."""
        server = self.answers(*answers)
        server._player = InOrder(parse_script(msgspec.json.encode(answers)))
        return server

    # --- the program ---------------------------------------------------------------------------------------------

    def pieria(self, *words: str | bytes, **more: Any) -> Done:
        """Run the program to its end."""
        return self.begin(*words, **more).end()

    def together(self, *commands: Sequence[str | bytes], **more: Any) -> list[Done]:
        """Run several commands side by side."""
        going = [self.begin(*words, **more) for words in commands]
        return [each.end() for each in going]

    def exec(self, prompt: str = "do it", *words: str, **more: Any) -> Done:
        """`pieria exec` in mode full: most tests are not about leave."""
        return self.pieria("exec", prompt, "--mode", "full", *words, **more)

    def begin(
        self,
        *words: str | bytes,
        stdin: int | bytes | None = None,
        cwd: Path | None = None,
        before: Sequence[str] = (),
        environ: Mapping[str, str | None] | None = None,
        **more: Any,
    ) -> Going:
        """Start the program. `environ` changes single variables (None: not set); `before` stands before the command."""
        told = {**self.environ, **(environ or {})}
        given = stdin if isinstance(stdin, int) else subprocess.DEVNULL if stdin is None else subprocess.PIPE
        process = subprocess.Popen(
            [*before, PIERIA, *words],
            stdin=given,
            stdout=more.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            cwd=cwd or self.repo,
            env={name: value for name, value in told.items() if value is not None},
            **more,
        )
        going = Going(self, process, stdin if isinstance(stdin, bytes) else None)
        self._begun.append(going)
        return going

    # --- what it left --------------------------------------------------------------------------------------------

    def logs(self) -> list[Log]:
        """All logs, oldest first."""
        paths = [path for path in self.sessions.glob("*.jsonl") if path.is_file() and not path.name.startswith(".")]
        return [Log(path) for path in sorted(paths, key=lambda path: (_born(path), path.name))]

    @property
    def log(self) -> Log:
        """The only log."""
        (found,) = self.logs()
        return found

    def log_of(self, place: Path) -> Log:
        """The only log of a session that was begun in a folder."""
        (found,) = [log for log in self.logs() if log.data("session.created")[0]["cwd"] == str(place)]
        return found

    def place(self, name: str) -> Path:
        """One more folder to work in."""
        found = self.base / name
        found.mkdir()
        return found

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Run git as the person would."""
        done = subprocess.run(
            ["git", "-c", "user.name=Person", "-c", "user.email=person@localhost", *words],
            cwd=cwd or self.repo, env={**self.environ}, capture_output=True, check=True,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "surrogateescape")

    def commit(self, files: Mapping[str, bytes | str]) -> None:
        """Make a repository of these files, all committed."""
        shutil.copytree(self.blank, self.repo, dirs_exist_ok=True, symlinks=True)
        for name, content in files.items():
            path = self.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        if files:
            self.git("add", "-A")
            self.git("commit", "-q", "-m", "files")

    def marked(self) -> dict[int, bytes]:
        """Processes that carry a command's mark of one of our sessions, with their command lines."""
        marks = [f"PIERIA_JOB={log.id}".encode() for log in self.logs()]
        return {
            int(entry.name): _of(entry.name, "cmdline")
            for entry in os.scandir("/proc")
            if entry.name.isdecimal() and any(each in _of(entry.name, "environ") for each in marks)
        }

    def children(self) -> list[int]:
        """Those of them that matter: a supervisor's watch sees within a second that its command is over."""
        found = self.marked()
        watches = {pid for pid, words in found.items() if words.startswith(b"sh\0-c\0") and b"watch()" in words}
        parents = {pid: int((_of(str(pid), "stat").rpartition(b") ")[2].split() or [b"", b"0"])[1]) for pid in found}
        return [pid for pid in found if not {pid, parents[pid]} & watches]

    def kill_all(self) -> None:
        """End all of them at one moment, as a power cut would: none sees another die."""
        found = list(self.marked())
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def left(self, limit_s: float = 1.0) -> list[int]:
        """What still lives of our commands a moment later."""
        deadline = time.monotonic() + limit_s
        while (found := self.children()) and time.monotonic() < deadline:
            threading.Event().wait(0.05)
        return found

    def until(self, true: Callable[[], object]) -> None:
        """Wait for a fact that other processes bring about."""
        deadline = time.monotonic() + LIMIT_S
        while not true():
            assert time.monotonic() < deadline, "it never came true"
            threading.Event().wait(0.02)

    def close(self) -> None:
        """End what a test left going."""
        for going in self._begun:
            going.drop()
        for server in self.model:
            self.servers.do(server.stop())

    def look_over(self) -> None:
        """Hold every log against the server, the chain, the replay; and look for the key where it must not be."""
        logs = [log for log in self.logs() if log.path.name not in self.spoilt]
        started: Counter[str] = Counter()
        ended: Counter[str] = Counter()
        for log in logs:
            log.check()
            bodies = {sent.seq: hashlib.sha256(sent.body).hexdigest() for sent in rebuilt(log.path)}
            steps = {record["op"]: record for record in log.of("step.started")}
            assert [bodies[seq] for seq in sorted(bodies)] == [
                record["data"]["request"]["sha256"] for record in log.of("step.started")
            ]
            started.update(bodies.values())
            if log.data("agent.added") and log.data("agent.added")[0]["protocol"] != "scripted":
                ended.update(steps[record["op"]]["data"]["request"]["sha256"] for record in log.of("step.finished"))
        received = Counter(each.sha256 for server in self.model for each in server.received)
        if not self.spoilt:
            assert received - started == Counter(), "the model got a request that no log holds"
        assert ended - received == Counter(), "a log holds an answer to a request that was never received"
        for folder in (self.sessions.parent,):
            for path in folder.rglob("*"):
                if path.is_file():
                    assert KEY.encode() not in path.read_bytes(), f"the key is in {path}"
        assert not [words for words in self.said if KEY in words], "the key was printed"


def _of(pid: str, what: str) -> bytes:
    try:
        return Path("/proc", pid, what).read_bytes()
    except OSError:
        return b""


def _born(path: Path) -> bytes:
    """When a log's first record was written: ids sort by the second alone."""
    with path.open("rb") as file:
        return file.read(300).partition(b'"time":"')[2][:27]


class Going:
    """A process at work."""

    def __init__(self, desk: Desk, process: subprocess.Popen[bytes], fed: bytes | None) -> None:
        self.process = process
        self.pid = process.pid
        self._desk = desk
        self._fed = fed
        self._began = time.monotonic()

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to this process alone."""
        self.process.send_signal(number)

    def end(self, limit_s: float = LIMIT_S) -> Done:
        """Wait for its end. A fault of ours would be a traceback: there is never one."""
        try:
            out, err = self.process.communicate(self._fed, timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"it hung; so far it said:\n{out!r}\n{err.decode(errors='replace')}") from None
        words = err.decode("utf-8", "replace")
        self._desk.said += [words, (out or b"").decode("utf-8", "replace")]
        assert "Traceback" not in words, words
        return Done(self.process.returncode, out or b"", words, time.monotonic() - self._began)

    def kill(self) -> None:
        """As power loss would: no goodbye."""
        self.process.kill()
        self.process.communicate()

    def drop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()
        self.process.wait()
