"""Known secret values: replaced by markers before anything is recorded or sent, put back where the world needs them.

Reversible: a marker names the value and the form in which it stood. What is no known marker is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pieria.config.reading import read_start

MIN_CHARS = 8
"""Shorter values would mask ordinary words; they are not known."""
OPEN, CLOSE = "<<secret:", ">>"
_KEY_ENDINGS = ("API_KEY", "TOKEN", "SECRET", "PASSWORD")
_DOTENV_ENDINGS = (*_KEY_ENDINGS, "KEY", "PASSWD", "PASS", "PWD", "CREDENTIALS", "AUTH", "DSN")
_DOTENV_BYTES = 256 * 1024
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


class KnownSecrets:
    """Masks and reveals the values of one run. Made once, from variables by name; later ones need a new one.

    `own` names values that are masked and never put back: whoever knows the marker must not get at them.
    """

    def __init__(self, values: Mapping[str, str], *, own: Iterable[str] = ()) -> None:
        kept = {values[name] for name in own if name in values}
        taken: set[str] = set()
        self._values: dict[str, str] = {}
        self._markers: dict[str, str] = {}
        for name, value in sorted(values.items(), key=lambda item: (-len(item[1]), item[0])):
            if len(value) < MIN_CHARS or OPEN in value or value in OPEN:
                continue
            for form, text in _forms(value):
                marker = next((each for each in _candidates(name, form, values) if each not in taken), "")
                if marker and text not in self._markers:
                    taken.add(marker)
                    self._markers[text] = marker
                    if value not in kept:
                        self._values[marker] = text

    def begun(self, text: str) -> int:
        """Count the characters at the end of a text with which a known value may have begun."""
        most = 0
        for value in self._markers:
            sizes = range(min(len(value) - 1, len(text)), most, -1)
            most = next((size for size in sizes if text.endswith(value[:size])), most)
        return most

    def mask(self, text: str) -> str:
        """Replace every known value, the longest first. A text without any comes back as the same object."""
        hits = [value for value in self._markers if value in text]
        if not hits:
            return text
        import re

        longest_first = "|".join(re.escape(value) for value in sorted(hits, key=len, reverse=True))
        return re.sub(longest_first, lambda hit: self._markers[hit[0]], text)

    def reveal(self, text: str) -> str:
        """Put known values back. A marker of an unknown name stays as it is."""
        if OPEN not in text or not self._values:
            return text
        import re

        known = "|".join(re.escape(marker) for marker in self._values if marker in text)
        return re.sub(known, lambda hit: self._values[hit[0]], text) if known else text


def environment_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose names say that they hold a secret."""
    return {name: value for name, value in environ.items() if name.upper().endswith(_KEY_ENDINGS)}


def dotenv_secrets(root: str) -> dict[str, str]:
    """Return what looks secret in the `.env` of a trusted folder; {} when it can't be read. Loads nothing of it."""
    try:
        data = read_start(f"{root}/.env", limit=_DOTENV_BYTES)
    except OSError:
        return {}
    pairs = _pairs(data.decode("utf-8", "surrogateescape"))
    return {name: value for name, value in pairs if _is_secret(name, value)}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n"):
        name, assigned, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not assigned or not (name.isascii() and name.isidentifier()):
            continue
        quoted = value[:1] in ('"', "'")
        yield name, value[1:].partition(value[0])[0] if quoted else value.partition(" #")[0].rstrip()


def _is_secret(name: str, value: str) -> bool:
    """By name, as a login in an address, or by the look of a key: long, one word, letters with digits."""
    if name.upper().endswith(_DOTENV_ENDINGS) or ("://" in value and "@" in value):
        return True
    looks_random = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return len(value) >= 20 and looks_random and not any(char in value for char in " /:.,")


# --- forms ----------------------------------------------------------------------------------------------------


def _candidates(name: str, form: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield markers that give no value away, the one with the name itself first."""
    shown = "".join(char if char.isascii() and (char.isalnum() or char in "_-.") else "_" for char in name)
    ending = f":{form}" if form else ""
    for label in (shown, *(f"{prefix}{len(shown)}" for prefix in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")):
        marker = f"{OPEN}{label}{ending}{CLOSE}"
        if not any(value in marker for value in values.values() if len(value) >= MIN_CHARS):
            yield marker


def _forms(value: str) -> Iterator[tuple[str, str]]:
    """Yield the value under "" and its other spellings under the name of the encoding, each once."""
    import binascii

    seen = {value}
    raw = value.encode("utf-8", "surrogatepass")
    standard = binascii.b2a_base64(raw, newline=False).decode("ascii").rstrip("=")
    yield "", value
    for form, text in (
        ("json", _json(value, ascii_only=False)),
        ("json-ascii", _json(value, ascii_only=True)),
        ("url", _percent(raw, safe=b"")),
        ("url-path", _percent(raw, safe=b"/")),
        ("url-form", _percent(raw, safe=b"").replace("%20", "+")),
        ("base64", standard),
        ("base64-url", standard.replace("+", "-").replace("/", "_")),
    ):
        if text not in seen:
            seen.add(text)
            yield form, text


def _json(value: str, *, ascii_only: bool) -> str:
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return value
    import json

    return json.dumps(value, ensure_ascii=ascii_only)[1:-1]


def _percent(raw: bytes, *, safe: bytes) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED or byte in safe else f"%{byte:02X}" for byte in raw)
