"""Logs to try things on, written by the real writer; a clock that ticks; a disk that fails when told."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from pieria.core.events.calls import ApprovalRequested, Ruling, ToolFinished, ToolStarted
from pieria.core.events.model import Request, StepFinished, StepLost, StepStarted
from pieria.core.events.session import MAGIC, SessionClosed, SessionCreated, SessionOpened
from pieria.core.events.turns import PromptSubmitted, TurnFinished, TurnStarted
from pieria.core.record import TAIL_BYTES, Draft, Record, chain_hash
from pieria.core.values import PERSON, SESSION, AgentId, Call, CallId, OpId, Usage
from pieria.store.create import create
from pieria.store.disk import Disk
from pieria.store.log import Log
from pieria.store.open import Opened, open_log

LEAD = AgentId("lead")
HEAD, TAIL = '{"messages":[', "]}"


class Ticks:
    """A clock that moves a millisecond at each look, or where it is set."""

    def __init__(self) -> None:
        self.now_ns = 1_796_067_468_000_000_000

    def __call__(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns


class FaultyDisk(Disk):
    """The real disk, but for the faults that are set: a method's name to what it does instead."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, Callable[..., object]] = {}
        self.calls: list[str] = []

    def _do(self, name: str, *arguments: object) -> object:
        self.calls.append(name)
        instead = self.faults.get(name) or getattr(super(), name)
        return instead(*arguments)

    def write(self, fd, data):
        return self._do("write", fd, data)

    def fdatasync(self, fd):
        self._do("fdatasync", fd)

    def fsync(self, fd):
        self._do("fsync", fd)

    def ftruncate(self, fd, size):
        self._do("ftruncate", fd, size)

    def rename(self, source, target):
        self._do("rename", source, target)

    def reserve(self, fd, offset, length):
        return self._do("reserve", fd, offset, length)


def failing(number: int) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise OSError(number, os.strerror(number))

    return fail


def full_after(good: int, number: int = errno.ENOSPC, *, short: int = 0) -> Callable[[int, bytes], int]:
    """Take `good` writes, then `short` bytes of the next, or refuse it."""
    left = [good]

    def write(fd: int, data: bytes) -> int:
        left[0] -= 1
        if left[0] >= 0:
            return os.write(fd, data)
        if short:
            return os.write(fd, data[:short])
        raise OSError(number, os.strerror(number))

    return write


def created(session: str, **changes: object) -> SessionCreated:
    values: dict[str, object] = {
        "magic": MAGIC, "format": 1, "session": session, "seed": 7, "tool": "0.1", "reducer": 1, "recipe": 1,
        "os": "linux", "boot_id": "b", "cwd": "/somewhere",
    }  # fmt: skip
    return SessionCreated(**(values | changes))  # type: ignore[arg-type]


def opened(pid: int = 4242) -> Draft:
    return Draft(SESSION, SessionOpened(pid=pid, start_time=1, boot_id="b", tool="0.1"))


def prompt(text: str) -> Draft:
    return Draft(PERSON, PromptSubmitted(to=LEAD, text=text))


def closed(outcome: str = "done") -> Draft:
    return Draft(SESSION, SessionClosed(outcome=outcome, exit_code=0))


def new_log(folder: Path, session: str = "s", *, disk: Disk | None = None, clock: Ticks | None = None) -> Log:
    log, _ = create(str(folder), created(session), clock=clock or Ticks(), disk=disk)
    return log


class Scripted:
    """Appends turns as the loop would: intents synced before outcomes, requests that follow one another."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._after: int | None = None
        self._body = HEAD.encode()

    async def turn(self, text: str, *, result: str = "fine") -> None:
        log = self.log
        (asked,) = log.append([prompt(text)])
        log.append([Draft(LEAD, TurnStarted(inputs=(asked.seq,)), cause=asked.seq)])
        lost = self.step(text)
        await log.synced(lost.seq)
        log.append([Draft(LEAD, StepLost(reason="crash"), op=lost.op)])
        begun = self.step()
        await log.synced(begun.seq)
        call = CallId(f"c{begun.seq}")
        usage = Usage(input=10, output=2) if result == "fine" else None
        _, tool = log.append(
            [
                Draft(LEAD, StepFinished(text="", calls=(Call(call, "bash", "{}"),), usage=usage), op=begun.op),
                Draft(LEAD, ToolStarted(call, "bash", 1, begun.seq, Ruling("rule"))),
            ]
        )
        await log.synced(tool.seq)
        done = log.append([Draft(LEAD, ToolFinished(call, result), op=tool.op), Draft(LEAD, TurnFinished("done"))])
        await log.synced(done[-1].seq)

    def step(self, *fragments: str) -> Record:
        for fragment in fragments:
            separator = b"" if self._body == HEAD.encode() else b","
            self._body += separator + fragment.encode()
        body = self._body + TAIL.encode()
        first = self._after is None
        request = Request(
            after=self._after, add=fragments, recipe=1, encoder=1, sha256=hashlib.sha256(body).hexdigest(),
            len=len(body), head=HEAD if first else None, tail=TAIL if first else None,
        )  # fmt: skip
        (record,) = self.log.append([Draft(LEAD, StepStarted(request, attempt=1, purpose="work", model="m"))])
        self._after = record.seq
        return record


async def write_session(folder: Path, session: str = "s", *, turns: int = 2, close: bool = True) -> Path:
    """Write a session of a few turns, one with a long result; the last record's durability is marked only inside."""
    log = new_log(folder, session)
    log.append([opened()])
    script = Scripted(log)
    for number in range(turns):
        await script.turn(f'{{"say":"turn {number} – ü"}}', result="fine" if number % 2 == 0 else "long " * 900)
    if close:
        log.append([closed()])
    await log.close()
    return folder / f"{session}.jsonl"


def open_all(path: Path, *, clock: Ticks | None = None, disk: Disk | None = None) -> tuple[Opened, list[Record]]:
    found: list[Record] = []
    return open_log(str(path), clock=clock or Ticks(), take=found.append, disk=disk), found


def let_go(opening: Opened) -> None:
    """Drop what an opening holds."""
    if opening.log is not None:
        opening.log.drop()
    else:
        os.close(opening.texts.fd)


def resealed(line: bytes) -> bytes:
    """Give a changed line the hash of its new bytes."""
    body = line[:-TAIL_BYTES]
    return body + b',"hash":"' + chain_hash(body).encode() + b'"}\n'


def lines_of(path: Path) -> list[bytes]:
    return [line + b"\n" for line in path.read_bytes().split(b"\n")[:-1]]


def question(seq: int) -> Draft:
    return Draft(LEAD, ApprovalRequested(CallId("c"), "a" * 64, f"why {seq}"))


def with_op(draft: Draft, op: str) -> Draft:
    return Draft(draft.agent, draft.event, op=OpId(op))
