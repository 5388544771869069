"""Where sessions live and what they are called. Nothing here reads a log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from pieria.core.errors import UsageError

SUFFIX = ".jsonl"
INDEX = "index.json"
UNBORN = ".new-"


def sessions_dir(environ: Mapping[str, str]) -> str:
    """Return the folder of all sessions. It need not exist."""
    root = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(root):  # by its specification a relative one counts as unset
        root = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(root, "pieria", "sessions")


def new_session_id(now_ns: int, random: bytes) -> str:
    """Make an id that sorts by time; three random bytes tell sessions of one second apart."""
    from time import gmtime, strftime

    return f"{strftime('%Y%m%dt%H%M%S', gmtime(now_ns // 1_000_000_000))}-{random[:3].hex()}"


def log_path(folder: str, session: str) -> str:
    """Return the path of a session's log."""
    return os.path.join(folder, session + SUFFIX)


def unborn_path(folder: str, session: str) -> str:
    """Return where this process begins a log that is not durable yet."""
    return os.path.join(folder, f".{session}{UNBORN}{os.getpid()}")


def unborn_in(folder: str) -> list[str]:
    """Return the paths of all such logs in a folder, whoever began them."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if name[:1] == "." and UNBORN in name and name.rpartition(UNBORN)[2].isdecimal()
    ]


def session_of(path: str) -> str:
    """Return the id that a log's file name claims."""
    return os.path.basename(path).removesuffix(SUFFIX)


def session_folder(path: str) -> str:
    """Return the folder beside a log for what belongs to the session and is no record. It need not exist."""
    return path.removesuffix(SUFFIX)


def find_session(folder: str, prefix: str) -> str:
    """Return the path of the one session whose id begins with `prefix`, wherever it was started. Raises UsageError."""
    if not prefix:
        raise UsageError("The session's id is empty", "list them: pieria sessions")
    found = sorted(name for name in _log_names(folder) if name.startswith(prefix))
    exact = [name for name in found if name == prefix + SUFFIX]
    if len(found) == 1 or exact:
        return os.path.join(folder, (exact or found)[0])
    if not found:
        raise UsageError(f"No session begins with `{prefix}` in {folder}", "list them: pieria sessions")
    names = ", ".join(name.removesuffix(SUFFIX) for name in found[:5])
    raise UsageError(f"{len(found)} sessions begin with `{prefix}`: {names}", "give more of the id")


def _log_names(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (name for name in names if name.endswith(SUFFIX) and not name.startswith("."))


def logs_in(folder: str) -> list[str]:
    """Return the names of all logs in a folder, oldest first; none when it can't be read."""
    return sorted(_log_names(folder))
