"""Run benchmarks by name: start, turns, long, barriers, edits, fold. Prints tables; quote medians and ratios."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from itertools import pairwise

from bench import fold, measure

median = statistics.median


def start() -> None:
    """From process start to the first request, and two bare commands for scale."""
    print("\n## start, ms (min / median of 15, interleaved)")
    times: dict[str, list[float]] = {"python -c pass": [], "pieria --version": [], "first request": []}
    with measure.place() as folder, measure.model(folder, [{"text": "Hello."}]) as url:
        measure.Ran(folder, url, ["exec", "--quiet", "warm up"])
        for _ in range(15):
            for name, argv in (
                ("python -c pass", [sys.executable, "-c", "pass"]),
                ("pieria --version", [measure.PIERIA, "--version"]),
            ):
                began = time.monotonic_ns()
                subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
                times[name].append((time.monotonic_ns() - began) / 1e6)
            seen = len(measure.requests(folder))
            ran = measure.Ran(folder, url, ["exec", "--quiet", "hello"])
            times["first request"].append((measure.requests(folder)[seen]["arrived"] - ran.began) / 1e6)
    for name, values in times.items():
        print(f"{name:<18} {min(values):7.1f} / {median(values):.1f}")


def _session(count: int) -> None:
    with measure.place() as folder, measure.model(folder, measure.shell_turns(count)) as url:
        peak = _peak(folder, url)
        rows = measure.requests(folder)
        gaps = [(after["arrived"] - before["done"]) / 1e6 for before, after in pairwise(rows)]
        window = 50 if count >= 500 else 10
        breaks = sum(row["shared"] < row["before"] for row in rows[1:])
        grown = (rows[-1]["bytes"] - rows[0]["bytes"]) / (len(rows) - 1)
        print(
            f"{count} turns: gap median {median(gaps):.2f} ms (p95 {sorted(gaps)[int(0.95 * len(gaps))]:.2f}), "
            f"first {window} {median(gaps[1 : window + 1]):.2f}, last {window} {median(gaps[-window:]):.2f}; "
            f"peak RSS {peak:.1f} MB; first request {rows[0]['bytes']} B, +{grown:.0f} B a turn; "
            f"{breaks} prefix breaks; "
            f"log {measure.log_of(folder).stat().st_size / 1e6:.2f} MB"
        )


def _peak(folder: measure.Path, url: str) -> float:
    """Run in a child whose children's usage is only this program's."""
    code = (
        "import resource,subprocess,sys;"
        "p=subprocess.run(sys.argv[1:],stdin=subprocess.DEVNULL,stdout=subprocess.DEVNULL,stderr=subprocess.PIPE);"
        "sys.stderr.buffer.write(p.stderr if p.returncode else b'');"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss/1024)"
    )
    argv = [sys.executable, "-c", code, measure.PIERIA, "exec", "--quiet", "--mode", "full", "go"]
    env = measure.environment(folder, url)
    done = subprocess.run(argv, cwd=folder / "repo", env=env, check=True, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    return float(done.stdout)


def turns() -> None:
    """The gap between an answer and the next request, one shell call in between."""
    print("\n## turns")
    _session(200)


def long() -> None:
    """Flatness over 1,000 turns."""
    print("\n## long")
    _session(1000)


def barriers() -> None:
    """How many fdatasync calls a shell turn costs, by strace."""
    print("\n## barriers")
    with measure.place() as folder, measure.model(folder, measure.shell_turns(50)) as url:
        out = str(folder / "strace.txt")
        wrap = ["strace", "-f", "-o", out, "-e", "trace=fdatasync,fsync"]
        measure.Ran(folder, url, ["exec", "--quiet", "--mode", "full", "go"], wrap=wrap)
        with open(out, encoding="utf-8") as source:
            calls = [line for line in source if "sync(" in line]
        print(f"50 shell turns: {len(calls)} fsync and fdatasync calls in all, {len(calls) / 50:.2f} a turn")


def folding() -> None:
    """How fast a log becomes a state."""
    print("\n## fold")
    fold.main([])


def main(names: list[str]) -> int:
    """Run the named benchmarks."""
    known = {"start": start, "turns": turns, "long": long, "barriers": barriers, "fold": folding}
    wrong = [name for name in names if name not in known]
    if wrong:
        print(f"bench: there is no {wrong[0]}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}")
    for name in names or known:
        known[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
