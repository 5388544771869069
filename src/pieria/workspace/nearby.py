"""Names near one that is not there: told, never guessed."""

from __future__ import annotations

import os
from collections import deque

ENTRIES = 3000
SHOWN = 5
SKIPPED = {"node_modules", "__pycache__", "target", "venv"}


def hint(real: str) -> str:
    """Return a sentence with like names in the folder and files of the same name below it; "" if none."""
    folder, name = os.path.split(real)
    while folder != "/" and not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    like = _like(folder, name)
    same = _same(folder, os.path.basename(real))
    said = ""
    if name != os.path.basename(real):
        said += f" The folder {os.path.join(folder, name)} does not exist."
    if like:
        said += f" In {folder} there is: {', '.join(like)}."
    if same:
        said += f" Files of that name: {', '.join(same)}. Paths are used exactly as given."
    return said


def _like(folder: str, name: str) -> list[str]:
    import difflib

    names = [entry.name for entry in _entries(folder)][:ENTRIES]
    folded = [entry for entry in names if entry.casefold() == name.casefold()]
    close = difflib.get_close_matches(name, names, n=SHOWN, cutoff=0.7)
    return list(dict.fromkeys([*folded, *close]))[:SHOWN]


def _same(folder: str, name: str) -> list[str]:
    """Look breadth first, at no more than so many entries, and never from the top of everything."""
    if folder in {"/", os.path.expanduser("~")}:
        return []
    found: list[str] = []
    waiting, left = deque([folder]), ENTRIES
    while waiting and left > 0 and len(found) < SHOWN:
        for entry in _entries(waiting.popleft()):
            left -= 1
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED and not entry.name.startswith("."):
                    waiting.append(entry.path)
            elif entry.name.casefold() == name.casefold():
                found.append(entry.path)
    return found[:SHOWN]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
