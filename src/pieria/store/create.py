"""Begins a session's log in two phases: record 0 is written at once, its name and durability follow in the thread.

Invariant: a file with a log's name always has a whole record 0.
"""

from __future__ import annotations

import fcntl
import os

from pieria.core.errors import PieriaError
from pieria.core.events.session import SessionCreated
from pieria.core.record import Draft, Record
from pieria.core.values import SESSION
from pieria.store.chain import Chain
from pieria.store.disk import Disk, sync_folder
from pieria.store.faults import LogPaused, unreadable
from pieria.store.log import Log
from pieria.store.paths import log_path, unborn_path
from pieria.store.stamp import Clock
from pieria.store.sync import Barrier


def create(folder: str, created: SessionCreated, *, clock: Clock, disk: Disk | None = None) -> tuple[Log, Record]:
    """Return the log of a new session and its record 0, before either is durable: appends may go on meanwhile.

    Needs no event loop yet. Raises PieriaError when the folder can't be written.
    """
    disk = disk or Disk()
    path = log_path(folder, created.session)
    temp = unborn_path(folder, created.session)
    fd = -1
    try:
        made = _make_folders(folder)
        if os.path.lexists(path):
            raise PieriaError(f"There is a session of this name already: {path}", "start again")
        fd = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if fd >= 0:
            os.close(fd)
            os.unlink(temp)
        raise unreadable(path, problem) from problem

    def publish() -> None:
        disk.rename(temp, path)
        for each in (folder, *made):
            sync_folder(disk, each)

    chain = Chain()
    chain.epoch = 1
    barrier = Barrier(fd, path, disk=disk, written=-1, durable=-1, publish=publish)
    log = Log(fd, path, chain=chain, clock=clock, disk=disk, barrier=barrier)
    try:
        record = log.begin(Draft(SESSION, created))
    except LogPaused:
        log.drop()
        os.unlink(temp)
        raise
    return log, record


def _make_folders(folder: str) -> list[str]:
    """Make what is missing, for the person alone; return the folders whose entries are new."""
    made = []
    while folder and not os.path.isdir(folder):
        made.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(made):
        os.makedirs(each, mode=0o700, exist_ok=True)
    return [os.path.dirname(each) for each in made]
