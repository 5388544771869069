"""A command's output as a model may see it: the one way from raw bytes to text. Pure, total, bounded.

What is kept reads the same in a terminal that shows no colours: escapes and control characters are gone, a line that
was drawn over and over is its last state, and a note stands where bytes were left out.
"""

from __future__ import annotations

LIMIT = 30_000
"""Characters of cleaned text; a third of them from the start, since what matters most stands at the end."""

ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS and their like: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"  # two characters
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 character
)
CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"


def clean(head: bytes, tail: bytes, total: int, *, limit: int = LIMIT) -> str:
    """Return text of at most about `limit` characters from the first and last bytes of `total`."""
    missing = total - len(head) - len(tail)
    if missing <= 0:
        return _bounded(_plain(head + tail), limit)
    first, last = _plain(_whole_end(head)), _plain(_whole_start(tail))
    start, dropped = _start(first, limit // 3)
    end, cut = _end(last, limit - limit // 3)
    return _joined(start, end, missing + dropped + cut)


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    start, _ = _start(text, limit // 3)
    end, _ = _end(text[len(start) :], limit - limit // 3)
    return _joined(start, end, len(text[len(start) : len(text) - len(end)].encode()))


def _joined(start: str, end: str, missing: int) -> str:
    gap = "" if not start or start.endswith("\n") else "\n"
    return f"{start}{gap}[... {missing} bytes left out ...]\n{end}"


def _start(text: str, limit: int) -> tuple[str, int]:
    """Cut to the limit, at the end of a line if one is near; return also how many bytes went."""
    if len(text) <= limit:
        return text, 0
    line = text.rfind("\n", limit * 3 // 4, limit)
    kept = text[: line + 1 if line >= 0 else limit]
    return kept, len(text[len(kept) :].encode())


def _end(text: str, limit: int) -> tuple[str, int]:
    if len(text) <= limit:
        return text, 0
    since = len(text) - limit
    line = text.find("\n", since, since + limit // 4)
    kept = text[line + 1 if line >= 0 else since :]
    return kept, len(text[: len(text) - len(kept)].encode())


def _plain(data: bytes) -> str:
    import re

    text = data.decode("utf-8", "replace")
    if text.isprintable():
        return text
    text = re.sub(ESCAPES, "", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_state, text.split("\n")))
    return re.sub(CONTROLS, "", re.sub(r"[^\n]\x08", "", text))


def _last_state(line: str) -> str:
    """Return what a line shows in the end: the last non-empty stretch after a carriage return."""
    return next((part for part in reversed(line.split("\r")) if part), "")


def _whole_end(data: bytes) -> bytes:
    """Drop a character that the cut left without its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if 0xC0 <= byte < 0xF8:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < need else data
        if byte < 0x80:
            return data
    return data


def _whole_start(data: bytes) -> bytes:
    """Drop the rest of a character whose start the cut took."""
    for count in range(min(4, len(data))):
        if not 0x80 <= data[count] < 0xC0:
            return data[count:] if count < 4 else data
    return data
