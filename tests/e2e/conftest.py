"""The desk of each end-to-end test, looked over when the test is done."""

from __future__ import annotations

import os
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


@pytest.fixture
def desk(tmp_path: Path, servers: Servers) -> Iterator[Desk]:
    """A home, an empty folder to work in, and the program. Its logs are checked at the end."""
    place = Desk(Path(os.path.realpath(tmp_path)), servers)
    yield place
    place.close()
    place.look_over()
