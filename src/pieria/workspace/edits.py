"""Applying a set of changes: all or none, on the files as they were known, and durable when it says so."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from pieria.core.ports import Applied
from pieria.core.values import Change, FileHash, OpId
from pieria.workspace import steps
from pieria.workspace.disk import Disk
from pieria.workspace.reading import NOT_A_FILE, UNREADABLE, digest
from pieria.workspace.spots import Changed, Spot, spots_of


def apply(disk: Disk, op: OpId, changes: Sequence[Change]) -> Applied:
    """Make all changes or none: done; conflict (a file was not as known); none (an error); mixed (told in detail)."""
    spots = spots_of(op, tuple(changes))
    if refusal := unfit(spots):
        return ended("none", spots, refusal)
    if differing := [words for spot in spots if (words := _difference(spot))]:
        return ended("conflict", spots, "; ".join(differing) + ". Nothing was changed.")
    made: list[str] = []
    prepared: dict[str, bool] = {}
    try:
        for spot in spots:
            if spot.pre_sha256 is None:
                steps.make_folder(disk, spot.folder, made)
            if os.path.lexists(spot.temp) or os.path.lexists(spot.aside):
                taken = f"{spot.temp} is there already: another edit may be at work. Nothing was changed."
                _discard(disk, spots, prepared, made)
                return ended("none", spots, taken)
            prepared[spot.path] = False
            prepared[spot.path] = steps.prepare(disk, spot)
    except OSError as error:
        _discard(disk, spots, prepared, made)
        return ended("none", spots, f"{described(error)}. Nothing was changed.")
    return _bring_in_all(disk, spots, prepared, made)


def _bring_in_all(disk: Disk, spots: list[Spot], prepared: dict[str, bool], made: list[str]) -> Applied:
    begun: list[Spot] = []
    modes = {spot.path: os.lstat(spot.path).st_mode & 0o7777 for spot in spots if spot.only_mode}
    try:
        for spot in sorted(spots, key=lambda spot: spot.only_mode):
            begun.append(spot)
            steps.bring_in(disk, spot, prepared=prepared[spot.path])
    except Changed as error:
        return roll_back(disk, spots, begun[:-1], "conflict", str(error), made=made, modes=modes)
    except OSError as error:
        return roll_back(disk, spots, begun, "none", described(error), made=made, modes=modes)
    return finish(disk, spots)


def finish(disk: Disk, spots: list[Spot]) -> Applied:
    """Remove what came out, make the names durable. From here on the edit is made, whatever happens."""
    notes = []
    try:
        notes += [f"{_kept(spot)}." for spot in spots if not steps.clean(disk, spot)]
        steps.sync_folders(disk, spots)
    except OSError as error:
        notes.append(f"The changes are made, but then: {described(error)}.")
    return ended("done", spots, " ".join(notes))


def roll_back(
    disk: Disk,
    spots: list[Spot],
    begun: list[Spot],
    status: str,
    why: str,
    *,
    made: Sequence[str] = (),
    modes: dict[str, int] | None = None,
) -> Applied:
    """Take back what was brought in, last first; `status` if nothing of ours remains, else mixed."""
    left = []
    for spot in reversed(begun):
        try:
            if spot.only_mode and modes:
                steps.set_mode(disk, _with_mode(spot, modes[spot.path]))
            elif not steps.take_back(disk, spot):
                left.append(f"{spot.path} was changed again meanwhile: {hashes(spot)}")
        except OSError as error:
            left.append(f"{spot.path} could not be put back ({described(error)}): {hashes(spot)}")
    try:
        left += [_kept(spot) for spot in spots if not steps.clean(disk, spot)]
        _remove_folders(disk, made)
        steps.sync_folders(disk, spots)
    except OSError as error:
        left.append(described(error))
    if left:
        return ended("mixed", spots, f"{why}; not all could be taken back: {'; '.join(left)}.")
    return ended(status, spots, f"{why}. Nothing was changed.")


def _kept(spot: Spot) -> str:
    return f"{spot.temp} or {spot.aside} holds what someone else wrote; it is kept"


def _with_mode(spot: Spot, mode: int) -> Spot:
    import msgspec

    return msgspec.structs.replace(spot, mode=mode)


def _discard(disk: Disk, spots: list[Spot], prepared: dict[str, bool], made: list[str]) -> None:
    """Remove temp files and folders of an edit that never began."""
    with contextlib.suppress(OSError):
        for spot in spots:
            if spot.path in prepared:
                steps.clean(disk, spot)
        _remove_folders(disk, made)


def _remove_folders(disk: Disk, made: Sequence[str]) -> None:
    for folder in reversed(made):
        with contextlib.suppress(OSError):  # someone else may have put a file there
            disk.rmdir(folder)


def unfit(spots: list[Spot]) -> str:
    """Return why a set of changes can't be made at all; "" when it can."""
    if len({spot.path for spot in spots}) != len(spots):
        return "One path is named twice. Nothing was changed."
    for spot in spots:
        if spot.post_sha256 is not None and spot.post is None and not spot.only_mode:
            return f"The new content of {spot.path} is not what was approved. Nothing was changed."
    return ""


def _difference(spot: Spot) -> str:
    """Say how a path differs from what the change is based on; "" when it does not."""
    if os.path.realpath(spot.folder) != spot.folder:
        return f"{spot.folder} leads elsewhere now"
    now = digest(spot.path)
    if now == spot.pre_sha256:
        return ""
    if now is None:
        return f"{spot.path} is gone"
    if spot.pre_sha256 is None:
        return f"{spot.path} exists already"
    if now == NOT_A_FILE:
        return f"{spot.path} is no longer a file"
    if now == UNREADABLE:
        return f"{spot.path} can't be read"
    return f"{spot.path} changed since it was read (sha256 {now[:12]}, expected {spot.pre_sha256[:12]})"


def ended(status: str, spots: list[Spot], detail: str) -> Applied:
    """Return how it ended, with what each path holds now."""
    return Applied(status, tuple(FileHash(spot.path, known(spot.path)) for spot in spots), detail)


def known(path: str) -> str | None:
    """Return a regular file's hash, None for anything else."""
    now = digest(path)
    return None if now in {NOT_A_FILE, UNREADABLE} else now


def hashes(spot: Spot) -> str:
    """Name a path's three contents for a person to choose from."""
    before, ours, now = spot.pre_sha256, spot.post_sha256, digest(spot.path)
    return f"before {before or 'absent'}, ours {ours or 'absent'}, now {now or 'absent'}"


def described(error: OSError) -> str:
    """Say what the system said, and of which file."""
    where = error.filename2 or error.filename
    text = error.strerror or str(error)
    return f"{text}: {where}" if isinstance(where, str) else text
