"""What a power cut leaves of files: names and bytes that were synced, and any part of what was not.

The model: a folder's entries are as after some call since its last sync (calls stay in their order). A file that was
synced once holds a mix, by blocks of 4 KiB, of its bytes then and now; one that never was may be cut, zeroed or empty.
"""

from __future__ import annotations

import os
import random
import shutil
import stat

import msgspec

BLOCK = 4096
FOLDER = -1


class Node(msgspec.Struct, frozen=True):
    """A file: its mode and bytes."""

    mode: int
    data: bytes


Listing = dict[str, int]
"""Names of one folder to their files' numbers; FOLDER for folders."""


class Image(msgspec.Struct, frozen=True):
    """All files of a tree as they are: folders in order, each with its entries, and the files by number."""

    folders: dict[str, Listing]
    nodes: dict[int, Node]

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Mode and bytes by path."""
        return {
            f"{folder}/{name}": (self.nodes[number].mode, self.nodes[number].data)
            for folder, listing in self.folders.items()
            for name, number in listing.items()
            if number != FOLDER
        }

    def write(self, root: str) -> None:
        """Make a tree so."""
        shutil.rmtree(root, ignore_errors=True)
        first: dict[int, str] = {}
        for folder in sorted(self.folders):
            os.makedirs(folder, exist_ok=True)
            for name, number in self.folders[folder].items():
                place = f"{folder}/{name}"
                if number == FOLDER:
                    continue
                if number in first:
                    os.link(first[number], place)
                    continue
                first[number] = place
                node = self.nodes[number]
                fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                try:
                    os.write(fd, node.data)
                    os.fchmod(fd, node.mode)
                finally:
                    os.close(fd)


class Kept(msgspec.Struct, frozen=True):
    """What is known of a tree's durability at one moment."""

    now: Image
    listings: dict[str, tuple[Listing, ...]]
    synced: dict[int, Node]
    last: dict[int, Node]

    def after_power_cut(self, dice: random.Random) -> Image:
        """One of the trees that may be found when the power is back."""
        folders: dict[str, Listing] = {}
        for folder in sorted(self.listings):
            parent, name = os.path.split(folder)
            if parent in self.listings and folders.get(parent, {}).get(name) != FOLDER:
                continue
            choices = self.listings[folder]
            at = dice.choice((0, len(choices) - 1, dice.randrange(len(choices))))
            folders[folder] = choices[at]
        used = {number for listing in folders.values() for number in listing.values() if number != FOLDER}
        nodes = {number: _after(dice, self.synced.get(number), self.last[number]) for number in used}
        return Image(folders, nodes)


def _after(dice: random.Random, synced: Node | None, last: Node) -> Node:
    if synced == last:
        return last
    if synced is None:
        return Node(last.mode, dice.choice((b"", last.data, worn(dice, last.data))))
    return Node(dice.choice((synced.mode, last.mode)), mixed(dice, synced.data, last.data))


def worn(dice: random.Random, data: bytes) -> bytes:
    """Bytes of which a part was never written: cut, or zeros for a hole, a block or all of it."""
    if not data:
        return data
    start = dice.randrange(len(data))
    end = dice.choice((len(data), dice.randrange(start, len(data)) + 1, min(len(data), start + BLOCK)))
    match dice.randrange(4):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + bytes(end - start) + data[end:]
        case 2:
            block = start // BLOCK * BLOCK
            stop = min(len(data), block + BLOCK)
            return data[:block] + bytes(stop - block) + data[stop:]
        case _:
            return bytes(len(data))


def mixed(dice: random.Random, old: bytes, new: bytes) -> bytes:
    """Blocks of both, at the length of either; what was never written reads as zeros."""
    length = dice.choice((len(old), len(new)))
    found = b""
    for start in range(0, length, BLOCK):
        stop = min(length, start + BLOCK)
        piece = dice.choice((old, new))[start:stop]
        piece += old[start + len(piece) : stop]
        found += piece + bytes(stop - start - len(piece))
    return found


class Medium:
    """Watches one tree. `look` after each call; `sync_file` and `sync_folder` when those were synced."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._numbers: dict[tuple[int, int], int] = {}
        self._next = 0
        self._listings: dict[str, tuple[Listing, ...]] = {}
        self._synced: dict[int, Node] = {}
        self._last: dict[int, Node] = {}
        self.now = Image({}, {})
        self.look()
        self.settle_all()

    def look(self) -> None:
        """Read the tree again. A file that was freed and a new one never share a number."""
        folders: dict[str, Listing] = {}
        numbers: dict[tuple[int, int], int] = {}
        self._walk(self._root, folders, numbers)
        self._numbers = numbers
        for folder, listing in folders.items():
            known = self._listings.get(folder)
            if known is None:
                self._listings[folder] = ({}, listing) if folder != self._root else (listing,)
            elif known[-1] != listing:
                self._listings[folder] = (*known, listing)
        used = {number for listing in folders.values() for number in listing.values() if number != FOLDER}
        self.now = Image(folders, {number: self._last[number] for number in used})

    def _walk(self, folder: str, folders: dict[str, Listing], numbers: dict[tuple[int, int], int]) -> None:
        listing: Listing = {}
        below = []
        with os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    listing[entry.name] = FOLDER
                    below.append(entry.path)
                    continue
                key = status.st_dev, status.st_ino
                number = numbers.get(key, self._numbers.get(key, -2))
                if number == -2:
                    number, self._next = self._next, self._next + 1
                numbers[key] = number
                listing[entry.name] = number
                with open(entry.path, "rb") as file:
                    self._last[number] = Node(stat.S_IMODE(status.st_mode), file.read())
        folders[folder] = dict(sorted(listing.items()))
        for each in sorted(below):
            self._walk(each, folders, numbers)

    def number_of(self, fd: int) -> int | None:
        status = os.fstat(fd)
        return self._numbers.get((status.st_dev, status.st_ino))

    def sync_file(self, number: int) -> None:
        self._synced[number] = self._last[number]

    def sync_folder(self, folder: str) -> None:
        if folder in self._listings:
            self._listings[folder] = self._listings[folder][-1:]

    def settle(self, place: str) -> None:
        """Count a file that others wrote as durable: they are not what is tested here."""
        folder, name = os.path.split(place)
        number = self.now.folders[folder][name]
        self.sync_file(number)
        self._listings[folder] = tuple({**listing, name: number} for listing in self._listings[folder])

    def settle_all(self) -> None:
        """Count everything as durable."""
        for folder in self.now.folders:
            self.sync_folder(folder)
        for number in self.now.nodes:
            self.sync_file(number)

    def kept(self) -> Kept:
        return Kept(self.now, dict(self._listings), dict(self._synced), dict(self._last))
