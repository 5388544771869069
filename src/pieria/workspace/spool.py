r"""The folder of one job: what a command wrote and how it ended.

Invariant: it can be read by anyone at any later time, in whatever state a crash left it. Files: `command`, `pid`, `out`
(stdout and stderr; there once the command may have begun), `rc` (exit record: "N\n"), `why` (why it was ended, and what
was killed for that).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal

from pieria.core.ports import Ended

SIDE_BYTES = 16 * 1024
"""How much is kept of each end of an output."""
CHUNK_BYTES = 256 * 1024

DEADLINE, OUTPUT, STOPPED, LOST, KILLED = "deadline", "output", "stopped", "lost", "killed"
"""Words in `why`. Lost: the supervisor was gone without an exit record, so its command was ended."""


def prepare(folder: str, command: str) -> None:
    """Make a job's folder and its command. A folder of a command that never began is taken over. Raises OSError."""
    try:
        os.mkdir(folder, 0o700)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if os.path.exists(f"{folder}/out"):
            raise
        remove(folder)
        os.mkdir(folder, 0o700)
    _append(f"{folder}/command", command.encode(errors="surrogateescape"))


def jobs(root: str) -> list[str]:
    """Return the names of all jobs whose folders stand there."""
    try:
        return os.listdir(root)
    except FileNotFoundError:
        return []


def remove(folder: str) -> None:
    """Remove a job's folder. It holds files only; an absent one is fine."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def note(folder: str, what: str, *words: str) -> None:
    """Record a reason why the command is being ended, so that it is known after a crash too."""
    with contextlib.suppress(FileNotFoundError):
        _append(f"{folder}/why", " ".join((what, *words)).encode(errors="replace") + b"\n")


def output_bytes(folder: str) -> int:
    """Return the size of the output so far."""
    try:
        return os.stat(f"{folder}/out").st_size
    except FileNotFoundError:
        return 0


def cut_output(folder: str, limit: int) -> None:
    """Cut what stands beyond the limit. Its writers append, so they go on at the cut."""
    if output_bytes(folder) > limit:
        os.truncate(f"{folder}/out", limit)


def began(folder: str) -> bool:
    """Whether the command may have begun."""
    return os.path.exists(f"{folder}/out")


def closed(folder: str) -> bool:
    """Whether the exit record is complete."""
    return _exit_code(folder) is not None


def collect(folder: str, *, same_boot: bool, reattached: bool) -> Ended:
    """Say how a command whose supervisor is gone ended. May be repeated; reads the output in chunks."""
    code = _exit_code(folder)
    if code is None and same_boot and not began(folder) and os.path.exists(f"{folder}/command"):
        return Ended(None, never_ran=True, reattached=reattached)
    reasons = _reasons(folder)
    head, tail, size, sha256 = _output(f"{folder}/out")
    return Ended(
        code,
        head=head,
        tail=tail,
        output_bytes=size,
        output_sha256=sha256,
        signal=_signal_name(code),
        timed_out=DEADLINE in reasons,
        too_much=OUTPUT in reasons,
        stopped=STOPPED in reasons,
        killed=tuple(reason.removeprefix(f"{KILLED} ") for reason in reasons if reason.startswith(f"{KILLED} ")),
        unknown=code is None,
        reattached=reattached,
    )


def _append(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)


def _exit_code(folder: str) -> int | None:
    """Return the exit code; a record without its newline is none."""
    try:
        with open(f"{folder}/rc", "rb", buffering=0) as file:
            record = file.read(16)
    except FileNotFoundError:
        return None
    return int(record) if record.endswith(b"\n") and record[:-1].isdigit() else None


def _reasons(folder: str) -> list[str]:
    try:
        with open(f"{folder}/why", "rb", buffering=0) as file:
            return list(dict.fromkeys(file.read().decode(errors="replace").splitlines()))
    except FileNotFoundError:
        return []


def _output(path: str) -> tuple[bytes, bytes, int, str]:
    """Return head, tail, size and hash. What is appended meanwhile by a background child is left out."""
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115  # the `with` is below
    except FileNotFoundError:
        return b"", b"", 0, hashlib.sha256().hexdigest()
    with file:
        left = os.fstat(file.fileno()).st_size
        hashed, head, tail, size = hashlib.sha256(), b"", b"", 0
        while left > 0 and (part := file.read(min(left, CHUNK_BYTES))):
            hashed.update(part)
            left -= len(part)
            size += len(part)
            room = SIDE_BYTES - len(head)
            head += part[:room]
            tail = (tail + part[room:])[-SIDE_BYTES:] if room < len(part) else tail
        return head, tail, size, hashed.hexdigest()


def _signal_name(code: int | None) -> str:
    """Return the signal that a shell means by 128 + N, as far as that can be told."""
    if code is None or code <= 128:
        return ""
    try:
        return signal.Signals(code - 128).name
    except ValueError:
        return ""
