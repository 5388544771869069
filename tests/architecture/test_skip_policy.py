"""Skips: with PIERIA_NO_SKIP=1 each one fails; what can say nothing on this system is left out instead."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT

SUITE = """
import pytest

@pytest.fixture
def tired():
    pytest.skip("tired")

@pytest.mark.skip(reason="tired")
def test_marked(): ...

def test_inside():
    pytest.skip("tired")

def test_fixture(tired): ...

def test_fine(): ...
"""

WHOLE_MODULE = "import pytest\npytest.skip('tired', allow_module_level=True)\n"


def outcome(root: Path, name: str, *, strict: bool) -> dict[str, int]:
    """Run pytest on a planted suite under this project's conftest; return the counts of its closing line."""
    shutil.copy(ROOT / "tests/conftest.py", root / "conftest.py")
    shutil.copy(ROOT / "pyproject.toml", root)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PIERIA_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", name],
        cwd=root,
        env={**clean, "NO_COLOR": "1", **({"PIERIA_NO_SKIP": "1"} if strict else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    counts = re.findall(r"(\d+) ([a-z]+)", done.stdout.splitlines()[-1])
    return {"status": done.returncode, **{word.removesuffix("s"): int(count) for count, word in counts}}


def test_skips_are_skips_by_hand(plant: Plant) -> None:
    root = plant({"test_suite.py": SUITE})
    assert outcome(root, "test_suite.py", strict=False) == {"status": 0, "passed": 1, "skipped": 3}


def test_every_kind_of_skip_fails_where_skips_are_not_allowed(plant: Plant) -> None:
    root = plant({"test_suite.py": SUITE})
    assert outcome(root, "test_suite.py", strict=True) == {"status": 1, "passed": 1, "failed": 1, "error": 2}


def test_a_module_that_skips_itself_fails_too(plant: Plant) -> None:
    root = plant({"test_module.py": WHOLE_MODULE})
    assert outcome(root, "test_module.py", strict=True) == {"status": 2, "error": 1}


def test_tests_of_another_system_are_left_out(plant: Plant) -> None:
    root = plant(
        {
            "test_macos.py": "import pytest\n@pytest.mark.macos\ndef test_a(): ...\ndef test_b(): ...\n",
            "test_root.py": "import pytest\n@pytest.mark.not_as_root\ndef test_a(): ...\ndef test_b(): ...\n",
        }
    )
    left_out, all_run = {"status": 0, "passed": 1, "deselected": 1}, {"status": 0, "passed": 2}
    assert outcome(root, "test_macos.py", strict=True) == (all_run if sys.platform == "darwin" else left_out)
    assert outcome(root, "test_root.py", strict=True) == (left_out if os.geteuid() == 0 else all_run)


def test_the_home_fixture_moves_every_place(home: Path) -> None:
    names = (
        "HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
    )
    places = [Path(os.environ[name]) for name in names]
    assert all(place.is_dir() and place.is_relative_to(home) for place in places)
