"""Which project configurations the person trusts: bound to the folder and to the very bytes that were shown.

One file, replaced whole under a lock; content that is no sound list is never overwritten and trusts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from pieria.config.reading import Unreadable, read_regular
from pieria.core.errors import PieriaError
from pieria.core.values import Value

FILE = "trust.json"
_LIMIT = 16 << 20
_MENDED = "move it away and trust again what you need"


class Standing(Value, frozen=True, gc=False):
    """Whether content is trusted. `changed`: other content of the folder was. `problem`: why nobody can say."""

    trusted: bool = False
    changed: bool = False
    problem: str = ""


class Trusted(msgspec.Struct, frozen=True):
    """The file: real path of a folder to the digest of what was shown."""

    version: int
    folders: dict[str, str]


class _Garbage(Exception):
    """The file is there and is no sound list."""


def is_trusted(root: str, content: bytes, *, state: str) -> bool:
    """Whether exactly this content of this folder is trusted."""
    return standing(root, content, state=state).trusted


def standing(root: str, content: bytes, *, state: str) -> Standing:
    """Look up a folder's content; a list that can't be read trusts nothing, and says so."""
    if not state:
        return Standing()
    try:
        known = _read(state).folders.get(_name(root))
    except _Garbage as problem:
        return Standing(problem=str(problem))
    return Standing(trusted=known == _digest(root, content), changed=known not in (None, _digest(root, content)))


def trust(root: str, content: bytes, *, state: str) -> None:
    """Trust this content of this folder, and nothing that the folder may hold later. Raises PieriaError."""
    _change(state, lambda folders: {**folders, _name(root): _digest(root, content)})


def untrust(root: str, *, state: str) -> bool:
    """Trust nothing of a folder any more; whether it was trusted before. Raises PieriaError."""
    name = _name(root)
    before = _change(state, lambda folders: {key: value for key, value in folders.items() if key != name})
    return name in before


def _name(root: str) -> str:
    """A folder's real path as text; the digest holds its true bytes."""
    return os.fsencode(os.path.realpath(root)).decode("utf-8", "backslashreplace")


def _digest(root: str, content: bytes) -> str:
    from hashlib import sha256

    return sha256(os.fsencode(os.path.realpath(root)) + b"\0" + content).hexdigest()


def _read(state: str) -> Trusted:
    """Read the list, a second time if the first shows garbage: another program may be in the middle of a write."""
    try:
        return _read_once(state)
    except _Garbage:
        import time

        time.sleep(0.02)
        return _read_once(state)


def _read_once(state: str) -> Trusted:
    path = f"{state}/{FILE}"
    try:
        data = read_regular(path, limit=_LIMIT)
        found = Trusted(1, {}) if data is None else msgspec.json.decode(data, type=Trusted)
    except (Unreadable, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise _Garbage(f"the list of trusted folders ({path}) can't be read: {problem}") from problem
    if found.version != 1:
        raise _Garbage(f"the list of trusted folders ({path}) is of another version")
    return found


def _change(state: str, change: Callable[[dict[str, str]], dict[str, str]]) -> dict[str, str]:
    """Replace the list under the lock; return what it was."""
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        with _locked(state):
            before = _read(state).folders
            after = change(before)
            if after != before:
                _replace(state, msgspec.json.encode(Trusted(1, after)))
            return before
    except _Garbage as problem:
        raise PieriaError(f"{problem}; it was left as it is", hint=_MENDED) from problem
    except OSError as problem:
        raise PieriaError(
            f"trust can't be recorded in {state}: {problem.strerror}", hint="this run alone can be told: --trust"
        ) from problem


@contextmanager
def _locked(state: str) -> Iterator[None]:
    """Hold the lock; it goes with the process that holds it, so it can't be left behind."""
    import fcntl

    descriptor = os.open(f"{state}/trust.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(state: str, data: bytes) -> None:
    # One name for the new file, which the lock makes ours: a crash leaves at most one, and the next write takes it.
    new = f"{state}/{FILE}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(new, f"{state}/{FILE}")
    folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
