"""Plant each mistake into a copy of the source and see which test goes red. `python -m tests.mutate [WORD]`.

Exits 1 when a mistake survives, 2 when one no longer fits its file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutate.mistakes import MISTAKES, Mistake

ROOT = Path(__file__).resolve().parents[2]
SUITES = (("tests/unit", "tests/core/test_policy.py"), ("tests/property",))
"""What must find a mistake, the quick ones first."""
NEUTRAL = Mistake("nothing at all", "turn.py", "", "")
LIMIT_S = 180


def main(arguments: list[str]) -> int:
    """Run the campaign, or the part of it whose names hold a word."""
    chosen = [mistake for mistake in MISTAKES if all(word in mistake.name for word in arguments)]
    if strays := [mistake for mistake in MISTAKES if source(mistake).count(mistake.old) != 1]:
        for mistake in strays:
            print(f"{mistake.file}: '{mistake.name}' does not fit any more: {mistake.old!r}", file=sys.stderr)
        print("hint: bring tests/mutate/mistakes.py up to date with the code", file=sys.stderr)
        return 2
    os.nice(10)
    began, survivors = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="pieria-mutate.") as folder:
        place = Path(folder) / "src"
        shutil.copytree(ROOT / "src", place, ignore=shutil.ignore_patterns("__pycache__"))
        if caught := caught_by(NEUTRAL, place):
            print(f"without any mistake the suites are red already: {caught}", file=sys.stderr)
            return 2
        for number, mistake in enumerate(chosen, start=1):
            caught = caught_by(mistake, place)
            survivors += [] if caught else [mistake.name]
            print(f"{number:>3}/{len(chosen)}  {mistake.name:<58}{caught or 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} caught in {time.monotonic() - began:.0f} s")
    return 1 if survivors else 0


def source(mistake: Mistake) -> str:
    return (ROOT / "src/pieria/core" / mistake.file).read_text(encoding="utf-8")


def caught_by(mistake: Mistake, place: Path) -> str:
    """Name the first test that goes red with the mistake in place; empty when none does."""
    path, sound = place / "pieria/core" / mistake.file, source(mistake)
    if mistake.old:
        path.write_text(sound.replace(mistake.old, mistake.new), encoding="utf-8")
    try:
        return next(filter(None, (red(suite, place) for suite in SUITES)), "")
    finally:
        path.write_text(sound, encoding="utf-8")


def red(suite: tuple[str, ...], place: Path) -> str:
    environment = {
        **os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "PIERIA_LAWS": "find",
        "PIERIA_SOURCE": str(place),
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", *suite]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{suite[0]} ran for {LIMIT_S} s"
    if done.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found.group(1).removeprefix("tests/") if found else f"{suite[0]} ended with {done.returncode}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
