"""How fast a log becomes a state: two made-up logs, verified, decoded and folded line by line.

`python -m bench.fold [EVENTS] [STEPS]` prints a table. Each measurement has a process of its own, for its peak memory.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time, time_ns

from pieria.core import clock
from pieria.core.events.calls import CallExamined, Ruling, ToolFinished, ToolSpawned, ToolStarted
from pieria.core.events.model import Request, StepFinished, StepPartial, StepStarted
from pieria.core.events.row import Event
from pieria.core.events.session import AgentAdded, BlobStored, SessionCreated, SessionOpened, SettingsApplied
from pieria.core.events.turns import PromptSubmitted, TurnFinished, TurnStarted
from pieria.core.fold import fold
from pieria.core.record import FIRST_PREV, Draft, Record, decode, encode
from pieria.core.state import State
from pieria.core.values import Access, Call, CallId, Details, Examined, FileHash, OpId, ToolSpec, TouchedPath, Usage
from pieria.store.open import open_log

AGENTS = 8
TURNS = 516
STEPS = 9_847
EVENTS = 100_000
LONG_STEPS = 10_000
TIMES = 5
ROOT = "/srv/app"
START = "2026-01-01T00:00:00.000000Z"
TOOLS: tuple[tuple[str, Access], ...] = (("read", "read"), ("shell", "shell"), ("edit", "edit"))


class Writing:
    """A log in the making: gives each event its envelope and keeps the chain."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._prev = FIRST_PREV
        self._time = START
        self._counts: dict[str, int] = {}

    def put(self, agent: str, event: Event, op: OpId | None = None) -> Record:
        seq = len(self.lines)
        if seq % 100 == 0:
            self._time = clock.later(self._time, 1.0)
        n = self._counts[agent] = self._counts.get(agent, -1) + 1
        record, line = encode(
            Draft(agent, event, op=op), seq=seq, prev=self._prev, durable=seq - 1, epoch=1, time=self._time, n=n
        )
        self._prev = record.hash
        self.lines.append(line)
        return record


def written(*, agents: int, turns: int, steps: int, events: int) -> Writing:
    """Write a log of so many turns and steps, its calls shared out so that it has about so many events."""
    log = Writing()
    tools = tuple(ToolSpec(name, 1, access, "what it does", "{}") for name, access in TOOLS)
    log.put("session", SessionCreated("pieria", 1, "log", 0, "0", 1, 1, "linux", "boot", ROOT))
    log.put("session", SessionOpened(1, 1, "boot", "0"))
    log.put("session", SettingsApplied("full"))
    names = [f"agent{i}" for i in range(agents)]
    for name in names:
        log.put("session", AgentAdded(name, "worker", "p", "model", "You are one of many.", tools, ROOT))
    running = [_turns(log, name, share(turns, agents, i), share(steps, agents, i), events / steps)
               for i, name in enumerate(names)]  # fmt: skip
    while running:  # agents take turns, step by step
        running = [story for story in running if next(story, None) is not None]
    return log


def share(total: int, parts: int, part: int) -> int:
    return total // parts + (part < total % parts)


def _turns(log: Writing, name: str, turns: int, steps: int, density: float) -> Iterator[bool]:
    debt, after = 0.0, None
    for turn in range(turns):
        prompt = log.put("person", PromptSubmitted(name, f"Please go on with part {turn}."))
        log.put(name, TurnStarted((prompt.seq,)))
        many = share(steps, turns, turn)
        for step in range(many):
            debt += density
            before = len(log.lines)
            after = _step(log, name, step, after, calls=0 if step == many - 1 else max(1, round((debt - 3) / 3.4)))
            debt -= len(log.lines) - before
            yield True
        log.put(name, TurnFinished("done"))


def _step(log: Writing, name: str, step: int, after: int | None, *, calls: int) -> int:
    wire = '{"role":"tool","tool_call_id":"x","content":"' + "out of the tool " * 2 + '"}'
    request = Request(after, (wire,), 1, 1, "ab" * 32, 100_000 + step, None if after else "{", None if after else "}")
    started = log.put(name, StepStarted(request, 1, "work", "model"))
    op = started.op
    assert op is not None
    asked = tuple(
        Call(
            CallId(f"{op}.{i}"), TOOLS[(step + i) % 3][0], f'{{"path":"src/part{step % 50}.py","number":{i}}}', "call_0"
        )
        for i in range(calls)
    )
    log.put(name, StepPartial("Let me look. "), op)
    text = "Let me look. " * (2 if calls else 20)
    log.put(name, StepFinished(text, asked, stop_reason="stop", usage=Usage(50_000, 90, 49_000), duration_ms=900), op)
    for call in asked:
        _call(log, name, call, step)
    if step % 20 == 7:
        log.put("session", BlobStored(0, 1, "cd" * 32, 2400, "A line of a file that is long. " * 60))
    return started.seq


def _call(log: Writing, name: str, call: Call, step: int) -> None:
    path = f"{ROOT}/src/part{step % 50}.py"
    access = dict(TOOLS)[call.name]
    facts = Examined(
        access, "ef" * 32, cwd="/srv", command="pytest -q" if access == "shell" else "",
        words=("pytest", "-q") if access == "shell" else None,
        paths=() if access == "shell" else (TouchedPath(f"src/part{step % 50}.py", path, inside=True),),
    )  # fmt: skip
    examined = log.put(name, CallExamined(call.id, facts))
    started = log.put(name, ToolStarted(call.id, call.name, 1, examined.seq, Ruling("mode", "mode full")))
    if access == "shell":
        log.put(name, ToolSpawned(call.id, 4000 + step, 123_456, "boot", str(call.id)))
    details = Details(exit_code=0) if access == "shell" else Details(files=(FileHash(path, "ab" * 32),))
    log.put(name, ToolFinished(call.id, "a line of output\n" * 5, details=details), started.op)


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(path: Path, what: str) -> float:
    """Return the CPU seconds that it takes to read, verify and decode each line, and to fold it if asked for.

    `open` does what the program does: lock, scan with every check, fold.
    """
    if what == "open":
        return _measure_open(path)
    state, prev, seq = State(), FIRST_PREV, 0
    gc.collect()
    gc.disable()
    begin = process_time()
    with path.open("rb") as file:
        for line in file:
            record = decode(line)
            assert record.prev == prev
            assert record.seq == seq
            prev, seq = record.hash, seq + 1
            if what == "fold":
                state = fold(state, record)
    took_s = process_time() - begin
    gc.enable()
    return took_s


def _measure_open(path: Path) -> float:
    state = State()

    def take(record: Record) -> None:
        nonlocal state
        state = fold(state, record)

    begin = process_time()
    opened = open_log(str(path), clock=time_ns, take=take)
    took_s = process_time() - begin
    assert opened.log is not None
    opened.log.drop()
    return took_s


def peak_mb() -> float:
    """The most memory that this process ever had; where the kernel tells no better, at least what its parent had."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def table(events: int, long_steps: int) -> None:
    """Write both logs, measure each in processes of their own, print."""
    sizes = {
        f"{AGENTS} agents, {TURNS} turns, {STEPS} steps": {
            "agents": AGENTS, "turns": TURNS, "steps": STEPS * events // EVENTS, "events": events,
        },
        f"one turn of {long_steps} steps": {"agents": 1, "turns": 1, "steps": long_steps, "events": 10 * long_steps},
    }  # fmt: skip
    print("CPU time, the best of several. Decode and fold together are what opening a log without its cache costs.")
    columns = (
        ("events", 9),
        ("MB", 7),
        ("B/event", 9),
        ("decode ms", 11),
        ("and fold ms", 13),
        ("us/event", 10),
        ("opened ms", 11),
    )
    print(f"{'log':<38}" + "".join(f"{name:>{width}}" for name, width in (*columns, ("RSS MB", 8))))
    with tempfile.TemporaryDirectory() as folder:
        for name, size in sizes.items():
            lines = written(**size).lines
            path = Path(folder) / "log.jsonl"
            path.write_bytes(b"".join(lines))
            seconds = {what: [_in_a_process(path, what) for _ in range(TIMES)] for what in ("decode", "fold", "open")}
            decode_s = min(found[0] for found in seconds["decode"])
            fold_s, count = min(found[0] for found in seconds["fold"]), len(lines)
            size_mb, rss = path.stat().st_size / 1e6, max(found[1] for found in seconds["open"])
            open_s = min(found[0] for found in seconds["open"])
            print(
                f"{name:<36}{count:>9,}{size_mb:>7.1f}{size_mb * 1e6 / count:>9.0f}{decode_s * 1000:>11.0f}"
                f"{fold_s * 1000:>13.0f}{fold_s * 1e6 / count:>10.2f}{open_s * 1000:>11.0f}{rss:>8.0f}"
            )


def _in_a_process(path: Path, what: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "bench.fold", "--measure", str(path), what]
    took_s, mb = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(took_s), float(mb)


def main(arguments: list[str]) -> None:
    """Print the table, or one measurement for the process that asked."""
    if arguments[:1] == ["--measure"]:
        print(measure(Path(arguments[1]), arguments[2]), peak_mb())
        return
    numbers = [int(argument) for argument in arguments]
    table(*(numbers + [EVENTS, LONG_STEPS][len(numbers) :]))


if __name__ == "__main__":
    main(sys.argv[1:])
