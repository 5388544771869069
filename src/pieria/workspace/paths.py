"""The real place of a path that a call names, and what policy must know of it; nothing is opened for it."""

from __future__ import annotations

import os

from pieria.core.ports import FileProblem, Place
from pieria.core.values import TouchedPath
from pieria.workspace import guarded

NAME_BYTES = 255
PATH_BYTES = 4096


def touch(given: str, place: Place, *, own_folders: tuple[str, ...] = ()) -> TouchedPath:
    """Resolve a path as the kernel would. `own_folders` hold the person's config and state of this program."""
    _check(given)
    root = os.path.realpath(place.root)
    lexical = os.path.join(root, given)
    real = os.path.realpath(lexical)
    real = guarded.name_in_git(real, root) or real
    areas = (root, *(os.path.realpath(folder) for folder in place.add_dirs))
    own = tuple(os.path.realpath(folder) for folder in own_folders)
    return TouchedPath(
        given=given,
        real=real,
        inside=any(guarded.within(real, area) for area in areas),
        guarded=_is_guarded(real, os.path.normpath(lexical), root, own),
        secret=guarded.is_secret(real) or guarded.is_secret(os.path.normpath(lexical)),
    )


def _check(given: str) -> None:
    try:
        raw = os.fsencode(given)
    except UnicodeEncodeError as error:
        raise FileProblem("refused", f"{given!r} has a character that no file name can have.") from error
    if b"\0" in raw:
        raise FileProblem("refused", f"{given!r} has a NUL character: no path can.")
    if len(raw) >= PATH_BYTES or any(len(part) > NAME_BYTES for part in raw.split(b"/")):
        raise FileProblem("refused", f"The path is too long for this system: {given[:100]}…")


def _is_guarded(real: str, lexical: str, root: str, own: tuple[str, ...]) -> bool:
    if guarded.named_guarded(real, root) or guarded.named_guarded(lexical, root):
        return True
    if guarded.is_git_internal(real) or guarded.in_bare_repository(real, root):
        return True
    for folder in own:
        at_home = guarded.within(root, folder) and guarded.within(real, root)  # a worktree kept in our own state
        if not at_home and _within_any_case(real, folder):
            return True
    return guarded.led_to(real, root) or guarded.is_hard_link_of_rules(real, root, own)


def _within_any_case(path: str, folder: str) -> bool:
    names, wanted = guarded.parts(path), guarded.parts(folder)
    return names[: len(wanted)] == wanted
