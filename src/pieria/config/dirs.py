"""The person's own folders by the XDG convention, from the environment that is given and no other."""

from __future__ import annotations

from collections.abc import Mapping

from pieria.core.errors import UsageError
from pieria.core.values import Value


class HomeDirs(Value, frozen=True, gc=False):
    """Absolute folders of ours; "" where neither HOME nor the XDG variable says."""

    home: str
    config: str
    state: str


def home_dirs(environ: Mapping[str, str]) -> HomeDirs:
    """Find the folders. Relative values are ignored, as the convention demands. Creates nothing."""
    home = _absolute(environ.get("HOME", ""))
    return HomeDirs(
        home=home,
        config=_below(environ.get("XDG_CONFIG_HOME", ""), home, ".config"),
        state=_below(environ.get("XDG_STATE_HOME", ""), home, ".local/state"),
    )


def state_dir(dirs: HomeDirs) -> str:
    """The folder for state, or UsageError when there is no way to know it."""
    if not dirs.state:
        raise UsageError(
            "there is no place to keep state: HOME and XDG_STATE_HOME are not set",
            hint="set HOME, or set XDG_STATE_HOME to an absolute folder",
        )
    return dirs.state


def _absolute(path: str) -> str:
    return path.rstrip("/") or "/" if path.startswith("/") else ""


def _below(given: str, home: str, fallback: str) -> str:
    base = _absolute(given)
    if not base and home:
        base = f"{home.rstrip('/')}/{fallback}"
    return f"{base.rstrip('/')}/pieria" if base else ""
