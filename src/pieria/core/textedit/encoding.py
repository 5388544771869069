"""Bytes to text and back without loss: whatever `decode` accepts, `encode` gives back byte for byte."""

from __future__ import annotations

from pieria.core.values import Value

UNKNOWN = "unknown-8bit"
"""Not UTF-8 as a whole: ASCII can be trusted, a byte that is no UTF-8 is a lone surrogate of the text."""

DAMAGED = "damaged"
"""Has the mark of an encoding whose rules its bytes break: it can be shown, not edited."""

MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


class Decoded(Value, frozen=True, gc=False):
    """A file's text with its own line endings, without its byte-order mark.

    `newline` is the ending that most lines have: CR LF, LF, or CR where a file has nothing else.
    """

    text: str
    encoding: str
    bom: bytes
    newline: str


def decode(data: bytes) -> Decoded:
    """Find out what text bytes hold. Never fails: see UNKNOWN and DAMAGED."""
    for bom, encoding in MARKS:
        if data.startswith(bom):
            return _marked(data, bom=bom, encoding=encoding)
    try:
        text, encoding = data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = data.decode("utf-8", "surrogateescape"), UNKNOWN
    return Decoded(text, encoding, b"", newline_of(text))


def _marked(data: bytes, *, bom: bytes, encoding: str) -> Decoded:
    body = data[len(bom) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        text = body.decode("utf-8", "surrogateescape")
        return Decoded(text, UNKNOWN if encoding == "utf-8" else DAMAGED, bom, newline_of(text))
    return Decoded(text, encoding, bom, newline_of(text))


def encode(text: str, decoded: Decoded) -> bytes:
    """Return the bytes of a changed text in the encoding, and with the mark, of the file it came from."""
    if decoded.encoding in {UNKNOWN, DAMAGED}:
        return decoded.bom + text.encode("utf-8", "surrogateescape")
    return decoded.bom + text.encode(decoded.encoding)


def newline_of(text: str) -> str:
    """Return the ending that most lines have; LF when there is no line's end."""
    pairs, feeds = text.count("\r\n"), text.count("\n")
    if not feeds:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if pairs * 2 > feeds else "\n"
