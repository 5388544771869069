"""Text from outside made fit for the log, the screen and the wire. Pure."""

from __future__ import annotations

EXCERPT_CHARS = 500
SECRET_CHARS = 4
"""A shorter key is a word that local servers are given, and hiding it would only blur what they say."""


def without_surrogates(text: str) -> str:
    """Join pairs of surrogates to characters and replace lone ones by U+FFFD: the result is always UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def excerpt(text: str, *, secret: str = "") -> str:
    """Return one printable line of at most 500 characters that does not hold the secret."""
    head = text[: 40 * EXCERPT_CHARS]
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    if len(secret) >= SECRET_CHARS:
        line = line.replace(secret, "<key>")
    return line if len(line) <= EXCERPT_CHARS else line[: EXCERPT_CHARS - 1] + "…"
