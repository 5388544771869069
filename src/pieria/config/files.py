"""One configuration file: its bytes, its keys checked, and errors that name file and line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pieria.config.keys import Checked, Wrong, checked, known_keys, near
from pieria.config.reading import Unreadable, read_regular
from pieria.core.errors import UsageError

FILE_BYTES = 1 << 20


def read_file(path: str) -> bytes | None:
    """Return a configuration file's bytes, None when there is none. Raises UsageError."""
    try:
        return read_regular(path, limit=FILE_BYTES)
    except Unreadable as problem:
        raise UsageError(f"{path}: {problem}", hint="mend the file, or move it away") from problem


def parse_file(path: str, data: bytes, *, home: str) -> Mapping[str, Checked]:
    """Return the keys of a file with their checked values. `home` stands for a leading `~/` in paths."""
    text, table = _toml(path, data)
    found: dict[str, Checked] = {}
    for key, value in table.items():
        if key not in known_keys():
            hint = near(key, known_keys()) or f"keys are {', '.join(known_keys())}"
            raise UsageError(f"{path}:{_line(text, key)}: there is no key {key!r}", hint=hint)
        try:
            found[key] = checked(key, _at_home(key, value, home))
        except Wrong as problem:
            raise UsageError(
                f"{path}:{_line(text, key)}: {key}: {problem}", hint="mend this line; keys are never ignored"
            ) from problem
    return found


def _toml(path: str, data: bytes) -> tuple[str, dict[str, Any]]:
    # Imported only where a file exists: a start without any config does not pay for it.
    import tomllib

    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise UsageError(f"{path}:{line}: this line is not UTF-8", hint="save the file as UTF-8") from problem
    try:
        return text, tomllib.loads(text)
    except ValueError as problem:  # TOMLDecodeError, and numbers of thousands of digits
        where, what = _place_of(str(problem), text)
        raise UsageError(
            f"{path}:{where}: broken TOML: {what}",
            hint='a line is KEY = VALUE, and texts stand in quotes: mode = "ask"',
        ) from problem
    except RecursionError as problem:
        raise UsageError(f"{path}: nested too deeply", hint="keys are a flat list") from problem


def _place_of(message: str, text: str) -> tuple[int, str]:
    """Take the line out of the parser's words: `… (at line 3, column 5)` or `… (at end of document)`."""
    what, _, place = message.rpartition(" (at ")
    number = place.removeprefix("line ").split(",")[0]
    return (int(number) if number.isdigit() else max(1, text.rstrip().count("\n") + 1)), what or message


def _line(text: str, key: str) -> int:
    """Return the line that first sets a key: the first that names it outside of texts and lists."""
    import tomllib

    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not _names(line.lstrip(" \t["), key):
            continue
        try:
            tomllib.loads("\n".join(lines[: number - 1]))
        except tomllib.TOMLDecodeError:
            continue  # all before it is not whole: it stands inside a text or a list
        return number
    return 1


def _names(line: str, key: str) -> bool:
    return any(
        line.startswith(name) and line[len(name) :].lstrip()[:1] in ("=", ".", "]")
        for name in (key, f'"{key}"', f"'{key}'")
    )


def _at_home(key: str, value: object, home: str) -> object:
    """Write out a leading `~/` in folders and in the paths of rules."""
    if key not in ("allow", "deny", "add_dirs") or not isinstance(value, list):
        return value
    return [at_home(item, home) if isinstance(item, str) else item for item in value]


def at_home(text: str, home: str) -> str:
    """Write out `~/` at the start of a path, or of the path in a rule."""
    if not home:
        return text
    if text == "~" or text.startswith("~/"):
        return home.rstrip("/") + text[1:]
    return text.replace("(~/", f"({home.rstrip('/')}/", 1)
