"""Raw arguments of a call to values that fit the tool's schema, or to words that let the model get it right next time.

Invariant: any text gives a dict or an error text, never an exception. Only harmless repairs are made: nothing is
guessed that could make another call out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

Fields = dict[str, object]

SPELLINGS = {
    "file_path": "path",
    "filepath": "path",
    "filename": "path",
    "file": "path",
    "old_string": "old",
    "old_str": "old",
    "old_text": "old",
    "new_string": "new",
    "new_str": "new",
    "new_text": "new",
    "replace_all": "all",
    "cmd": "command",
    "regex": "pattern",
    "query": "pattern",
    "contents": "content",
    "offset": "from_line",
    "limit": "lines",
    "todos": "items",
    "status": "state",
    "content": "text",
    "task": "text",
}
"""What other harnesses call our fields. Used only where the field is unknown and ours is absent."""

STATES = {"pending": "open", "in_progress": "doing", "completed": "done"}
NAMES = {
    "bash": "shell",
    "sh": "shell",
    "exec": "shell",
    "run": "shell",
    "cat": "read",
    "view": "read",
    "ls": "glob",
    "find": "glob",
    "search": "grep",
    "rg": "grep",
    "strreplace": "edit",
    "applypatch": "edit",
    "patch": "edit",
    "create": "write",
    "todowrite": "todo",
}
SHOWN_PROBLEMS = 4
MOST = 1e15
"""Numbers from here on are no counts, lines or seconds that anybody means; infinity is one of them."""


class _Unfit(Exception):  # a way out of the decoder, never seen outside
    """The text is no JSON that we take."""


def parse(raw: str, schema_json: str) -> Fields | str:
    """Return fields that fit the schema (the subset that our tools use), or what is wrong and what was expected."""
    schema = msgspec.json.decode(schema_json)
    expected = f" Expected: {shape(schema)}"
    try:
        value = _decoded(raw if raw.strip() else "{}")
        if isinstance(value, str):  # the object came as a JSON string: encoded once too often
            value = _decoded(value)
    except _Unfit as problem:
        return f"The arguments are not valid JSON: {problem}.{expected}"
    if not isinstance(value, dict):
        return f"The arguments must be one JSON object, not {_kind(value)}.{expected}"
    problems: list[str] = []
    fitted = _fit(value, schema, at="", problems=problems)
    if problems:
        more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        return f"Wrong arguments: {'; '.join(problems[:SHOWN_PROBLEMS])}{more}.{expected}"
    assert isinstance(fitted, dict)
    return fitted


def shape(schema: Mapping[str, object]) -> str:
    """Show a schema the short way: `{"path": string, "lines"?: integer}`."""
    match schema:
        case {"enum": list(values)}:
            return "|".join(f'"{value}"' for value in values)
        case {"type": "array", "items": dict(items)}:
            return f"[{shape(items)}, ...]"
        case {"type": "object", "properties": dict(fields)}:
            required = _required(schema)
            parts = (f'"{name}"{"" if name in required else "?"}: {shape(of)}' for name, of in fields.items())
            return "{" + ", ".join(parts) + "}"
    return str(schema.get("type", "anything"))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the tool that a wrong name most likely means, else None."""
    known = {_plain(each): each for each in names}
    plain = _plain(name)
    meant = NAMES.get(plain, plain)
    if meant in known:
        return known[meant]
    from difflib import get_close_matches

    close = get_close_matches(plain[:40], known, n=1, cutoff=0.6)
    return known[close[0]] if close else None


def _plain(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())


# --- JSON --------------------------------------------------------------------------------------------------------


def _decoded(raw: str) -> object:
    """Decode strictly: no NaN, no double key, no lone surrogate."""
    import json

    try:
        value: object = json.loads(raw, object_pairs_hook=_unique, parse_constant=_refused)
    except json.JSONDecodeError as problem:
        raise _Unfit(_place(problem.msg, raw, problem.pos)) from None
    except RecursionError:
        raise _Unfit("it is nested too deeply") from None
    except ValueError:  # an integer of thousands of digits
        raise _Unfit("a number in it is too long") from None
    _check_text(value, raw)
    return value


def _unique(pairs: list[tuple[str, object]]) -> Fields:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _Unfit(f"the field {_quoted(twice)} is given twice")
    return fields


def _refused(constant: str) -> object:
    raise _Unfit(f"{constant} is no JSON number")


def _check_text(value: object, raw: str) -> None:
    """Refuse lone surrogates: such text can't be sent, stored or written as UTF-8."""
    if raw.isascii() and "\\ud" not in raw and "\\uD" not in raw:
        return
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                try:
                    text.encode()
                except UnicodeEncodeError as problem:
                    place = f"character {problem.start} of {_quoted(text)}"
                    raise _Unfit(f"half a surrogate pair at {place} is no character") from None
            case dict(fields):
                waiting += [*fields, *fields.values()]
            case list(items):
                waiting += items


def _place(what: str, raw: str, position: int) -> str:
    line = raw.count("\n", 0, position) + 1
    column = position - raw.rfind("\n", 0, position)
    near = _quoted(raw[max(0, position - 20) : position + 20])
    words = f"{what.removesuffix(' at')} at line {line} column {column} (character {position}), near {near}"
    if len(raw.rstrip()) <= position or "Unterminated" in what:
        words += "; the text was cut off: send the whole call again, in smaller pieces if it is long"
    return words


def _quoted(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:57] + "...")


# --- schema ------------------------------------------------------------------------------------------------------


def _required(schema: Mapping[str, object]) -> list[str]:
    names = schema.get("required")
    return [str(name) for name in names] if isinstance(names, list) else []


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"


def _fit(value: object, schema: Mapping[str, object], *, at: str, problems: list[str]) -> object:
    """Return the value in the schema's type; what can't be had is added to `problems`."""
    match schema.get("type"):
        case "object":
            return _fit_object(_unwrapped(value, dict), schema, at=at, problems=problems)
        case "array":
            items = schema.get("items")
            assert isinstance(items, dict)
            found = _unwrapped(value, list)
            if isinstance(found, dict) or (isinstance(found, str) and items.get("type") == "string"):
                found = [found]
            if isinstance(found, list):
                return [_fit(each, items, at=f"{at}[{n}]", problems=problems) for n, each in enumerate(found)]
        case "string":
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = str(value)
            if isinstance(value, str):
                return _fit_enum(value, schema, at=at, problems=problems)
        case "boolean":
            if isinstance(value, bool):
                return value
            if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
                return value.strip().lower() == "true"
        case "integer" | "number":
            number = _number(value)
            if number is not None and (schema["type"] == "number" or number == int(number)):
                return int(number) if schema["type"] == "integer" else number
    got = _number_given(value) if schema.get("type") in {"integer", "number"} else _kind(value)
    problems.append(f'"{at}" must be {_wanted(schema)}, not {got}')
    return None


def _number_given(value: object) -> str:
    """Say what stands where a number should, in a way that tells it from the numbers that would do."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {_quoted(value)}"
        case int() | float() if abs(value) < MOST:
            return str(value)
        case int() | float():
            return f"a number of more than {len(str(int(MOST))) - 1} digits"
    return _kind(value)


def _wanted(schema: Mapping[str, object]) -> str:
    match schema.get("type"):
        case "object":
            return f"an object like {shape(schema)}"
        case "array":
            return f"an array like {shape(schema)}"
        case "integer":
            return "a whole number"
    return f"a {schema.get('type')}"


def _fit_enum(value: str, schema: Mapping[str, object], *, at: str, problems: list[str]) -> str:
    allowed = schema.get("enum")
    if not isinstance(allowed, list) or value in allowed:
        return value
    meant = STATES.get(value.lower(), value.lower())
    if meant not in allowed:
        problems.append(f'"{at}" must be {shape(schema)}, not {_quoted(value)}')
    return meant


def _number(value: object) -> int | float | None:
    """Return a finite number, also from text like "5"."""
    if isinstance(value, str) and len(value) <= 30:
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < MOST else None


def _unwrapped(value: object, kind: type) -> object:
    """Decode a JSON-encoded string that stands where an array or object should."""
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
        try:
            found = _decoded(value)
        except _Unfit:
            return value
        return found if isinstance(found, kind | dict) else value
    return value


def _fit_object(value: object, schema: Mapping[str, object], *, at: str, problems: list[str]) -> object:
    if not isinstance(value, dict):
        problems.append(f'"{at}" must be {_wanted(schema)}, not {_kind(value)}')
        return None
    known = schema["properties"]
    assert isinstance(known, dict)
    given = _gathered(_respelled(value, known), known)
    inside = f"{at}." if at else ""
    names = ", ".join(known)
    problems += [f"unknown field {_quoted(inside + name)} (known: {names})" for name in given if name not in known]
    present = {name: each for name, each in given.items() if name in known and each is not None}
    problems += [f'"{inside}{name}" is missing' for name in _required(schema) if name not in present]
    return {name: _fit(each, known[name], at=f"{inside}{name}", problems=problems) for name, each in present.items()}


def _respelled(value: Fields, known: Mapping[str, object]) -> Fields:
    """Give fields our names where they came under another harness's."""
    fields = dict(value)
    for name in value:
        ours = SPELLINGS.get(name, "")
        if name not in known and ours in known and ours not in fields:
            fields[ours] = fields.pop(name)
    return fields


def _gathered(value: Fields, known: Mapping[str, object]) -> Fields:
    """Make one item of the only list of objects from fields that stand beside it instead of in it."""
    lists = [name for name, of in known.items() if _item_fields(of)]
    if len(lists) != 1 or lists[0] in value:
        return value
    inner = _item_fields(known[lists[0]])
    loose = _respelled({name: each for name, each in value.items() if name not in known}, inner)
    if not loose or any(name not in inner for name in loose):
        return value
    return {**{name: each for name, each in value.items() if name in known}, lists[0]: [loose]}


def _item_fields(schema: object) -> Mapping[str, object]:
    match schema:
        case {"type": "array", "items": {"type": "object", "properties": dict(fields)}}:
            return fields
    return {}
