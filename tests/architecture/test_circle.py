"""Circle: one writer, ports are called from `perform` alone, and core asks nobody for the time.

All three are read off the syntax: a call of `append` on something called `log`, of a port's method on
something called like that port, of `now` and its like. So adapters and ports keep these names, and a new
port gets a line in PORTS.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT, dotted, parsed

WRITERS = {"src/pieria/runtime/loop.py", "src/pieria/runtime/recovery.py"}

CALLERS = {"src/pieria/runtime/perform.py", "src/pieria/runtime/recovery.py"}
"""Recovery finishes what a dead process had begun, through the same ports."""

PORTS = {
    "files": {"apply", "recover"},
    "processes": {"spawn", "go", "abandon", "stop"},
    "model": {"stream"},
}
"""What the port is called where it is held, to its methods that touch the world. A new port gets a line."""

CALLING_LAYERS = ("src/pieria/core", "src/pieria/runtime", "src/pieria/headless", "src/pieria/app")
"""Adapters may call themselves; everybody else goes round the circle."""


def calls(root: Path, *folders: str) -> list[tuple[str, int, str, str]]:
    """Return place, line, last name of the receiver (without underscores) and method of every method call."""
    return [
        (place, node.lineno, receiver.split(".")[-1].lstrip("_"), node.func.attr)
        for place, tree in parsed(root, *folders)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (receiver := dotted(node.func.value))
    ]


def stray_appends(root: Path) -> list[str]:
    return [
        f"{place}:{line}: log.append outside the loop and recovery"
        for place, line, receiver, method in calls(root, "src")
        if receiver == "log" and method == "append" and place not in WRITERS
    ]


def stray_port_calls(root: Path) -> list[str]:
    return [
        f"{place}:{line}: {receiver}.{method} outside perform"
        for place, line, receiver, method in calls(root, *CALLING_LAYERS)
        if method in PORTS.get(receiver, ()) and place not in CALLERS
    ]


def live_clocks(root: Path) -> list[str]:
    return [
        f"{place}:{line}: {receiver}.{method} in core"
        for place, line, receiver, method in calls(root, "src/pieria/core")
        if method in {"now", "utcnow", "today"}
    ]


def test_core_knows_recorded_times_only() -> None:
    assert live_clocks(ROOT) == []


def test_a_live_clock_in_core_is_found(plant: Plant) -> None:
    texts = {"src/pieria/core/clock.py": "x = datetime.datetime.now()\ny = date.today\n"}
    assert live_clocks(plant(texts)) == ["src/pieria/core/clock.py:1: datetime.now in core"]


def test_only_the_loop_and_recovery_append_to_the_log() -> None:
    assert stray_appends(ROOT) == []


def test_ports_are_called_by_perform_alone() -> None:
    assert stray_port_calls(ROOT) == []


def test_a_second_writer_is_found(plant: Plant) -> None:
    root = plant(
        {
            "src/pieria/headless/exec.py": "def f(self, a):\n    self._log.append(1)\n    a.append(2)\n",
            "src/pieria/app/fork.py": "log.append(3)\n",
            "src/pieria/runtime/loop.py": "log.append(4)\n",
        }
    )
    assert stray_appends(root) == [
        "src/pieria/app/fork.py:1: log.append outside the loop and recovery",
        "src/pieria/headless/exec.py:2: log.append outside the loop and recovery",
    ]


def test_a_port_called_past_perform_is_found(plant: Plant) -> None:
    root = plant(
        {
            "src/pieria/runtime/session.py": "async def f(a):\n    await a.model.stream(b'', print)\n",
            "src/pieria/runtime/perform.py": "def f(ports):\n    ports.files.apply(1, [])\n",
            "src/pieria/workspace/files.py": "def f(files):\n    files.apply(1, [])\n",
        }
    )
    assert stray_port_calls(root) == ["src/pieria/runtime/session.py:2: model.stream outside perform"]
