"""`./dev` says in its own words what it can't do."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65534


@pytest.fixture
def checkout() -> Iterator[Path]:
    """What `dev` needs, in a folder that anybody can enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in ("dev", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / each, folder)
        folder.chmod(0o755)
        yield folder
        for each in (folder, *folder.glob(".venv*")):
            each.chmod(0o755)


def dev(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it as somebody who may not write everywhere."""
    user = NOBODY if os.geteuid() == 0 else None
    return subprocess.run([folder / "dev", *words], capture_output=True, text=True, check=False, user=user)


def test_a_verb_that_is_none_is_named_before_the_usage(checkout: Path) -> None:
    done = dev(checkout, "frob", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dev: there is no verb 'frob'\nusage: ./dev VERB")
    assert dev(checkout).stdout.startswith("usage: ./dev VERB")


@pytest.mark.parametrize("closed", [".", ".venv", ".venv/bin"])
def test_a_checkout_that_cannot_be_written_is_called_that(checkout: Path, closed: str) -> None:
    place = checkout / closed
    place.mkdir(parents=True, exist_ok=True)
    (place / "kept").touch()
    if os.geteuid() == 0:
        for each in (checkout, checkout / ".venv"):
            if each != place and each.exists():
                os.chown(each, NOBODY, NOBODY)
    place.chmod(0o555)
    done = dev(checkout, "test")
    place.chmod(0o755)
    assert (done.returncode, done.stdout) == (1, "")
    told = done.stderr.splitlines()
    assert told[-2] == "dev: this checkout can't be written"
    assert told[-1].startswith("hint: ")
    assert not any(raw in done.stderr for raw in ("rm:", "Errno"))
