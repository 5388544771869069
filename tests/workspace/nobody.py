"""Running a part of a test as an ordinary user, because root passes permission tests vacuously."""

from __future__ import annotations

import ctypes  # noqa: F401  loaded before the change of user, who may not be able to read it
import difflib  # noqa: F401
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that an ordinary user can reach and owns; pytest's own are closed to everyone but root."""
    place = Path(os.path.realpath(tempfile.mkdtemp(prefix="pieria-test-")))
    place.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    yield place
    shutil.rmtree(place)


def as_nobody(body: Callable[[], None]) -> None:
    """Call `body` as an ordinary user: in a child if we are root."""
    if os.geteuid() != 0:
        body()
        return
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            body()
            code = 0
        except BaseException:  # the child must not go on into the parent's tests
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "it failed as an ordinary user; see the captured output"
