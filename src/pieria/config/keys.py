"""The keys that configuration may hold, each with its type, and checks that name what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pieria.core.policy import MODES, parse_rule

Checked = str | int | float | tuple[str, ...]


class Wrong(Exception):
    """A value that a key can't have; the text says what was expected."""


def known_keys() -> tuple[str, ...]:
    """All keys, in the order in which people read them."""
    return tuple(_CHECKS)


def checked(key: str, value: object) -> Checked:
    """Return a value as its key's type, or raise Wrong. The key must be a known one."""
    return _CHECKS[key](value)


def near(name: str, names: Iterable[str]) -> str:
    """Return a hint that names what was likely meant; "" when nothing is near."""
    import difflib

    found = difflib.get_close_matches(name, list(names), n=2, cutoff=0.6)
    return f"did you mean {' or '.join(found)}?" if found else ""


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return f"the text {_short(value)}"
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Wrong(f"a text in quotes is expected, not {_kind(value)}")
    if not value.strip():
        raise Wrong("an empty text says nothing; leave the key out")
    if "\x00" in value or "\n" in value:
        raise Wrong("a text of one line is expected")
    return value


def _url(value: object) -> str:
    text = _text(value)
    if not text.startswith(("http://", "https://")):
        _, login, place = text.rpartition("@")  # what stands before may hold a password
        shown = f"…@{place}" if login else text
        raise Wrong(f"an address that begins with http:// or https:// is expected, not {_short(shown)}")
    return text


def _variable(value: object) -> str:
    text = _text(value)
    if not (text.isascii() and text.isidentifier()):
        raise Wrong("the NAME of an environment variable is expected, never a key itself")
    return text


def _mode(value: object) -> str:
    text = _text(value)
    if text not in MODES:
        raise Wrong(f"one of {', '.join(MODES)} is expected, not {_short(text)}")
    return text


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong(f"a whole number is expected, not {_kind(value)}")
    if not 1 <= value < 2**53:
        raise Wrong(f"a whole number from 1 is expected, not {value}")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"a number is expected, not {_kind(value)}")
    return float(value)


def _seconds(value: object) -> float:
    number = _number(value)
    if not 0 < number < 1e9:
        raise Wrong(f"seconds greater than 0 are expected, not {value}")
    return number


def _temperature(value: object) -> float:
    number = _number(value)
    if not 0 <= number <= 2:
        raise Wrong(f"a number from 0 to 2 is expected, not {value}")
    return number


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise Wrong(f"a list of texts in brackets is expected, not {_kind(value)}")
    return tuple(_text(item) for item in value)


def _rules(value: object) -> tuple[str, ...]:
    found = _texts(value)
    for text in found:
        parsed = parse_rule(text)
        if isinstance(parsed, str):
            raise Wrong(parsed)
    return tuple(text.strip() for text in found)


_CHECKS: Final[Mapping[str, Callable[[object], Checked]]] = {
    "model": _text,
    "base_url": _url,
    "api_key_env": _variable,
    "mode": _mode,
    "allow": _rules,
    "deny": _rules,
    "add_dirs": _texts,
    "max_steps": _whole,
    "max_tokens": _whole,
    "timeout_s": _seconds,
    "effort": _text,
    "temperature": _temperature,
    "max_output_tokens": _whole,
}
