"""`read`: a file's text with line numbers, a bounded piece at a time. Looks at the disk only after policy has ruled."""

from __future__ import annotations

from collections.abc import Mapping

from pieria.core.ports import FileImage, FileProblem, Files, Place
from pieria.core.textedit import decode
from pieria.core.textedit.encoding import DAMAGED, UNKNOWN
from pieria.core.values import Details, Examined, FileHash, ToolResult, ToolSpec
from pieria.tools.base import (
    FILE_BYTES,
    ChangesNothing,
    StartsNothing,
    alike,
    counted,
    entries,
    fingerprint,
    found,
    refused,
    shown,
    size,
    string,
    visible,
    whole,
)
from pieria.tools.specs import LINES
from pieria.tools.specs import READ as SPEC

TEXT_BYTES = 64_000
LINE_CHARS = 2000
ENTRIES = 50

MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
    (b"RIFF", "an image, sound or video (RIFF)"),
    (b"OggS", "sound or video (Ogg)"),
    (b"ID3", "sound (MP3)"),
    (b"wOF", "a font"),
)


class Read(ChangesNothing, StartsNothing):
    """The tool `read`."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined:
        given = string(arguments, "path")
        start, lines = whole(arguments, "from_line", 1), whole(arguments, "lines", LINES)
        if start < 1 or lines < 1:
            return refused(SPEC, "from_line and lines must be 1 or more.", [given, str(start), str(lines)])
        touched = found(self._files, given, place)
        if isinstance(touched, str):
            return refused(SPEC, touched, [given])
        action = fingerprint(SPEC, [touched.real, str(start), str(lines)])
        return Examined(access="read", action=action, paths=(touched,))

    def run(self, facts: Examined, arguments: Mapping[str, object], place: Place) -> ToolResult:
        real = facts.paths[0].real
        name = shown(facts.paths[0].given)
        try:
            image = self._files.read(real, limit=FILE_BYTES)
        except FileProblem as problem:
            return self._unread(problem, real, name, place=place)
        known = Details(files=(FileHash(path=real, sha256=image.sha256),))
        if not image.data:
            return ToolResult(text=f"[{name} is empty]", details=known)
        decoded = readable(image.data)
        if decoded is None:
            return ToolResult(text=f"{name} is binary: {guess(image)}, {size(len(image.data))}.", error=True)
        text, notes = decoded
        if not text:
            return ToolResult(text=f"[{name} holds nothing but a byte-order mark]", details=known)
        start = whole(arguments, "from_line", 1)
        return _piece(text, notes, name=name, start=start, lines=whole(arguments, "lines", LINES), details=known)

    def _unread(self, problem: FileProblem, real: str, name: str, *, place: Place) -> ToolResult:
        if problem.kind == "folder":
            return _folder(real, name)
        if problem.kind == "absent":
            return ToolResult(text=absent(name, real, place), error=True)
        if problem.kind == "too_big":
            words = f"{name} is over {size(FILE_BYTES)}: use grep, or shell with head, tail or sed -n."
            return ToolResult(text=words, error=True)
        return ToolResult(text=str(problem), error=True)


def absent(name: str, real: str, place: Place) -> str:
    close = alike(real, place.root)
    hint = f" Near it: {', '.join(close)}." if close else " Find it with glob."
    return f"{name} does not exist.{hint}"


def readable(data: bytes) -> tuple[str, list[str]] | None:
    """Return a file's text as it is shown, and what is worth knowing of its bytes; None for binary."""
    decoded = decode(data)
    if "\0" in decoded.text or decoded.encoding == DAMAGED:
        return None
    notes = []
    if decoded.bom:
        notes.append("starts with a byte-order mark" if decoded.encoding == "utf-8" else decoded.encoding.upper())
    if decoded.encoding == UNKNOWN:
        notes.append("not UTF-8: \ufffd stands for bytes that are no text")
    if decoded.newline == "\r":
        notes.append("CR line endings")
    text = decoded.text.replace("\r", "\n") if decoded.newline == "\r" else decoded.text
    return visible(text), notes


def guess(image: FileImage) -> str:
    """Say what a binary file probably is."""
    for magic, words in MAGIC:
        if image.data.startswith(magic):
            return words
    return "unknown kind"


def _folder(real: str, name: str) -> ToolResult:
    try:
        names, count = entries(real, ENTRIES)
    except OSError as problem:
        return ToolResult(text=f"{name} is a folder that can't be listed: {problem.strerror}.", error=True)
    more = f"\n[{count - len(names)} more]" if count > len(names) else ""
    listing = "\n".join(names)
    head = f"{name} is a folder of {counted(count, 'entry', 'entries')}; glob lists more."
    return ToolResult(text=f"{head}\n{listing}{more}".rstrip("\n"))


def _piece(text: str, notes: list[str], *, name: str, start: int, lines: int, details: Details) -> ToolResult:
    """Number the asked lines as far as the limits go, and say how to go on."""
    rows = text.split("\n")
    if not rows[-1]:
        rows.pop()
    else:
        notes = [*notes, "no newline at the end"]
    if start > len(rows):
        words = f"{name} has {counted(len(rows), 'line')}; from_line {start} is past its end."
        return ToolResult(text=words, error=True)
    kept: list[str] = []
    room = TEXT_BYTES
    long = crlf = 0
    for number in range(start, min(len(rows), start + min(lines, LINES) - 1) + 1):
        line = rows[number - 1]
        if line.endswith("\r"):
            line = line[:-1]
            crlf += 1
        if len(line) > LINE_CHARS:
            line = f"{line[:LINE_CHARS]} [... {len(line) - LINE_CHARS} more characters in this line]"
            long += 1
        row = f"{number}\t{line}"
        room -= len(row.encode("utf-8", "replace")) + 1
        if room < 0 and kept:
            break
        kept.append(row)
    last = start + len(kept) - 1
    if crlf:
        notes = [*notes, "CRLF line endings" if crlf == len(kept) else "mixed line endings: some CRLF, some LF"]
    if long:
        notes = [*notes, "long lines are cut: see them whole by shell, with cut -c"]
    if last < len(rows):
        notes = [f"lines {start}-{last} of {len(rows)}: go on with from_line {last + 1}", *notes]
    tail = f"\n[{'; '.join(notes)}]" if notes else ""
    return ToolResult(text="\n".join(kept) + tail, details=details)
