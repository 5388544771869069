"""Run the real program against the mock, and measure it from outside: times, memory, bytes, barriers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PIERIA = str(Path(sys.executable).parent / "pieria")


@contextmanager
def place() -> Iterator[Path]:
    """A scratch home and repository, on a RAM disk where there is one (BENCH_DIR names another place)."""
    base = os.environ.get("BENCH_DIR") or ("/dev/shm" if Path("/dev/shm").is_dir() else None)
    folder = Path(tempfile.mkdtemp(prefix="pieria-bench-", dir=base))
    try:
        (folder / "home").mkdir()
        (folder / "repo").mkdir()
        (folder / "repo" / "README.md").write_text("# scratch\n")
        big = "".join(f"def f_{i:04d}(x):  return x * {i} + 1  # line\n" for i in range(2000))
        (folder / "repo" / "big.py").write_text(big)
        git = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-C", str(folder / "repo")]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
            subprocess.run([*git, *words], check=True, stdout=subprocess.DEVNULL)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def model(folder: Path, script: list[dict]) -> Iterator[str]:
    """The mock as a process of its own; yields its base URL."""
    (folder / "script.json").write_text(json.dumps(script))
    port = folder / "port"
    port.unlink(missing_ok=True)
    (folder / "requests.jsonl").unlink(missing_ok=True)
    mock = Path(__file__).with_name("mock.py")
    files = [str(folder / "script.json"), str(folder / "requests.jsonl"), str(port)]
    served = subprocess.Popen([sys.executable, str(mock), *files])
    try:
        while not port.exists():
            assert served.poll() is None, "the mock did not start"
            time.sleep(0.01)
        yield port.read_text()
    finally:
        served.kill()
        served.wait()


def environment(folder: Path, url: str) -> dict[str, str]:
    """A clean environment with a scratch home."""
    home = str(folder / "home")
    return {
        "PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "XDG_STATE_HOME": f"{home}/state",
        "XDG_CONFIG_HOME": f"{home}/config", "PIERIA_MODEL": "bench", "PIERIA_BASE_URL": url,
        "PIERIA_API_KEY": "bench-key-0000",
    }  # fmt: skip


class Ran:
    """One finished program: when it began, its exit code, CPU seconds and peak memory in MB."""

    def __init__(self, folder: Path, url: str, words: list[str], *, wrap: list[str] | None = None) -> None:
        argv = [*(wrap or []), PIERIA, *words]
        self.began = time.monotonic_ns()
        child = subprocess.Popen(
            argv, cwd=folder / "repo", env=environment(folder, url), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.out, self.err = child.communicate(timeout=600)
        self.exit_code = child.returncode

    @property
    def wall_ms(self) -> float:
        """Milliseconds since it began."""
        return (time.monotonic_ns() - self.began) / 1e6


def requests(folder: Path) -> list[dict]:
    """What the mock saw."""
    return [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]


def log_of(folder: Path) -> Path:
    """The latest session's log."""
    return max((folder / "home/state/pieria/sessions").glob("*.jsonl"))


def shell_turns(count: int) -> list[dict]:
    """A script of shell turns, then an answer."""
    turns: list[dict] = [{"call": ["shell", {"command": f"echo bench-turn-{i}"}]} for i in range(count)]
    return [*turns, {"text": "All done."}]
