"""The desk of each end-to-end test, looked over when the test is done."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.desk import Desk, Servers


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The loop in which models' servers live."""
    found = Servers()
    yield found
    found.close()


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit and no file."""
    place = tmp_path_factory.mktemp("blank")
    person = ("-c", "user.name=Person", "-c", "user.email=person@localhost")
    for words in (("init", "-q", "--template="), (*person, "commit", "-q", "--allow-empty", "-m", "start")):
        subprocess.run(["git", *words], cwd=place, check=True)
    return place


@pytest.fixture
def desk(tmp_path: Path, servers: Servers, blank: Path) -> Iterator[Desk]:
    """A home, an empty folder to work in, and the program. Its logs are checked at the end."""
    place = Desk(Path(os.path.realpath(tmp_path)), servers, blank)
    yield place
    place.close()
    place.look_over()
