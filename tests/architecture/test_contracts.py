"""Star: the import contracts of pyproject.toml hold here, and each of them goes red in a planted tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT

PACKAGES = (
    "commands",
    "app",
    "headless",
    "runtime",
    "store",
    "models",
    "tools",
    "workspace",
    "config",
    "core",
)

BREACHES = {
    "star": {"store/disk.py": "import pieria.models\n"},
    "composition": {"commands/log.py": "from pieria.store import disk\n", "store/disk.py": ""},
    "pure": {"core/turn.py": "def f():\n    import time\n    return time\n"},
    "core": {"core/turn.py": "from pieria.core import fold\n", "core/fold.py": ""},
    "acyclic": {
        "tools/edit.py": "from pieria.tools import read\n",
        "tools/read.py": "from pieria.tools import edit\n",
    },
    "owner-h11": {"tools/fetch.py": "import h11\n"},
}
"""Contract to the files, below src/pieria, that break it."""


def lint_imports(root: Path) -> tuple[int, str]:
    """Check the contracts of `root`/pyproject.toml against `root`/src; return exit status and output."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def planted(plant: Plant, breach: dict[str, str]) -> Path:
    """Write a tree with every package of the drawing, empty but for the breach."""
    empty = {f"src/pieria/{name}/__init__.py": "" for name in PACKAGES}
    root = plant({"src/pieria/__init__.py": "", "src/pieria/cli.py": "", **empty})
    shutil.copy(ROOT / "pyproject.toml", root)
    return plant({f"src/pieria/{name}": text for name, text in breach.items()})


def broken(said: str) -> list[str]:
    return [line.removesuffix(" BROKEN") for line in said.splitlines() if line.endswith(" BROKEN")]


def contract_name(contract: str) -> str:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = {entry["id"]: entry["name"] for entry in settings["tool"]["importlinter"]["contracts"]}
    return str(named[contract])


def test_the_contracts_hold() -> None:
    status, said = lint_imports(ROOT)
    assert status == 0, said


def test_an_empty_tree_keeps_every_contract(plant: Plant) -> None:
    status, said = lint_imports(planted(plant, {}))
    assert (status, broken(said)) == (0, []), said


@pytest.mark.parametrize("contract", sorted(BREACHES))
def test_a_breach_breaks_its_contract(contract: str, plant: Plant) -> None:
    status, said = lint_imports(planted(plant, BREACHES[contract]))
    assert (status, contract_name(contract) in broken(said)) == (1, True), said


def test_a_package_that_nobody_placed_breaks_the_star(plant: Plant) -> None:
    status, said = lint_imports(planted(plant, {"notifier/__init__.py": ""}))
    assert (status, broken(said)) == (1, [contract_name("star")]), said


def test_a_file_of_core_that_nobody_placed_breaks_the_core_layers(plant: Plant) -> None:
    status, said = lint_imports(planted(plant, {"core/mailbox.py": ""}))
    assert (status, broken(said)) == (1, [contract_name("core")]), said


def test_each_contract_has_a_breach() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert {entry["id"] for entry in settings["tool"]["importlinter"]["contracts"]} == set(BREACHES)
