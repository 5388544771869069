"""What every suite shares: who may skip, which tests run where, and a home that is not the person's.

A skip is a hole in the net, so with PIERIA_NO_SKIP=1 (continuous integration) each one fails. A test that
can say nothing here (another operating system, permissions that root does not feel) is left out, not skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

NEEDS = {
    "needs_bwrap": ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"],
    "needs_rg": ["rg", "--version"],
    "needs_tmux": ["tmux", "-V"],
    "needs_strace": ["strace", "-o", os.devnull, "true"],
}
"""Marker to the command that proves the need is met: there, and allowed to work."""

PLACES = {
    "HOME": "",
    "XDG_CONFIG_HOME": ".config",
    "XDG_STATE_HOME": ".local/state",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


def skips_fail() -> bool:
    return os.environ.get("PIERIA_NO_SKIP") == "1"


def works(argv: list[str]) -> bool:
    """Whether a command is installed and succeeds here."""
    if shutil.which(argv[0]) is None:
        return False
    return subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what says nothing here; mark as skipped what this machine lacks the means for."""
    silent = {"macos": sys.platform != "darwin", "not_as_root": os.geteuid() == 0}
    elsewhere = [item for item in items if any(item.get_closest_marker(name) for name in silent if silent[name])]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]
    wanted = {name for name in NEEDS if any(item.get_closest_marker(name) for item in items)}
    missing = {name for name in wanted if not works(NEEDS[name])}
    for item in items:
        for name in sorted(missing):
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"{name}: `{' '.join(NEEDS[name])}` fails here"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one where skips are not allowed."""
    report = yield
    if report.skipped and skips_fail():
        report.outcome = "failed"
        report.longrepr = f"skipped, and PIERIA_NO_SKIP=1 does not allow that: {reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a whole module that skips itself."""
    report = yield
    if report.skipped and skips_fail():
        report.outcome = "failed"
        report.longrepr = f"skipped, and PIERIA_NO_SKIP=1 does not allow that: {reason(report.longrepr)}"
    return report


def reason(longrepr: object) -> str:
    """Return the words of a skip: pytest gives (path, line, words)."""
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home: HOME and every XDG folder point into it, and no setting of the person's own leaks in."""
    place = tmp_path / "home"
    for name, folder in PLACES.items():
        (place / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        monkeypatch.setenv(name, str(place / folder))
    for name in os.environ:
        if name.startswith(("PIERIA_", "GIT_")) and name != "PIERIA_NO_SKIP":
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return place
