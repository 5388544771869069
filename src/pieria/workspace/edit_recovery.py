"""Closing an edit that a dead process had begun: forward once anything was brought in, else as if never begun.

It decides from the files alone, so it may be cut off and repeated at any point.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pieria.core.ports import Applied
from pieria.core.values import Change, OpId
from pieria.workspace import steps
from pieria.workspace.disk import Disk
from pieria.workspace.edits import described, ended, finish, hashes, roll_back
from pieria.workspace.reading import digest
from pieria.workspace.spots import Changed, Spot, removable, spots_of, state


def recover(disk: Disk, op: OpId, changes: Sequence[Change]) -> Applied:
    """Finish or undo changes: done; none or conflict (nothing of ours remains); mixed (told in detail)."""
    spots = spots_of(op, tuple(changes))
    try:
        given_back = {spot.path: words for spot in spots if (words := _give_back(disk, spot))}
    except OSError as error:
        return ended("mixed", spots, f"{described(error)}. " + " ".join(hashes(spot) for spot in spots))
    found = {spot.path: state(spot) for spot in spots}
    ours = [spot for spot in spots if found[spot.path] in {"done", "begun"}]
    others = [spot for spot in spots if found[spot.path] == "other" and spot.path not in given_back]
    neither = [f"{spot.path} is neither as before nor as wanted: {hashes(spot)}" for spot in others]
    conflicts = [*given_back.values(), *neither]
    if conflicts or not _brought_in(spots, ours):
        status = "conflict" if conflicts else "none"
        why = "; ".join(conflicts) or "It was cut off before anything was changed"
        return roll_back(disk, spots, ours if conflicts else [], status, why)
    return _go_on(disk, spots, found)


def _brought_in(spots: list[Spot], ours: list[Spot]) -> bool:
    """Whether anything shows that the edit had begun. Modes come last, so beside other changes they show nothing."""
    return any(not spot.only_mode for spot in ours) or (bool(ours) and all(spot.only_mode for spot in spots))


def _give_back(disk: Disk, spot: Spot) -> str:
    """Undo half of a swap: if what came out is not the file we knew, it goes back to its place."""
    if spot.only_mode or spot.pre_sha256 is None:
        return _give_back_created(disk, spot)
    if spot.post_sha256 is None:
        if digest(spot.aside) in {None, spot.pre_sha256} or removable(spot, spot.aside):
            return ""
        if not os.path.lexists(spot.path):
            disk.move(spot.aside, spot.path)
        return f"{spot.path} changed while it was being deleted"
    if digest(spot.path) != spot.post_sha256:
        return ""
    if os.path.lexists(spot.temp) and not removable(spot, spot.temp):
        disk.exchange(spot.temp, spot.path)
        return f"{spot.path} changed while it was being written"
    if os.path.lexists(spot.aside) and not removable(spot, spot.aside):
        disk.replace(spot.aside, spot.path)
        return f"{spot.path} changed while it was being written"
    return ""


def _give_back_created(disk: Disk, spot: Spot) -> str:
    """Undo half of taking a created file back: someone had written to it."""
    if spot.only_mode or not os.path.lexists(spot.aside) or removable(spot, spot.aside):
        return ""
    if not os.path.lexists(spot.path):
        disk.move(spot.aside, spot.path)
    return f"{spot.path} changed while it was being taken back"


def _go_on(disk: Disk, spots: list[Spot], found: dict[str, str]) -> Applied:
    begun = [spot for spot in spots if found[spot.path] in {"done", "begun"}]
    try:
        for spot in sorted(spots, key=lambda spot: spot.only_mode):
            if found[spot.path] == "done":
                steps.set_mode(disk, spot)
                _sync(disk, spot)
                continue
            begun.append(spot)
            _redo(disk, spot, found[spot.path])
    except Changed as error:
        return roll_back(disk, spots, [spot for spot in begun if spot is not begun[-1]], "conflict", str(error))
    except OSError as error:
        return roll_back(disk, spots, list(dict.fromkeys(begun)), "none", described(error))
    return finish(disk, spots)


def _redo(disk: Disk, spot: Spot, now: str) -> None:
    if spot.post is None and spot.post_sha256 is not None and not spot.only_mode:
        raise Changed(f"the new content of {spot.path} is not what was approved")
    if now == "begun":
        assert spot.post is not None
        steps.overwrite(disk, spot, spot.post, known=None)
        return
    steps.clean(disk, spot)
    if spot.pre_sha256 is None:
        steps.make_folder(disk, spot.folder, [])
    steps.bring_in(disk, spot, prepared=steps.prepare(disk, spot))


def _sync(disk: Disk, spot: Spot) -> None:
    """Make content durable that was written in place by the process that died."""
    if spot.post_sha256 is None:
        return
    fd = disk.open(spot.path, os.O_RDONLY)
    try:
        disk.fsync(fd)
    finally:
        os.close(fd)
