"""Raw arguments become fitting fields or words that name place, expectation and shape; never a traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pieria.tools.arguments import nearest, parse, shape
from pieria.tools.kit import kit
from tests.tools.real_files import RealFiles

TOOLS = kit(RealFiles(), known={}.get, search_path="")
SCHEMAS = {name: str(tool.spec.parameters) for name, tool in TOOLS.items()}
EDIT, READ, SHELL, LIST = (SCHEMAS[name] for name in ("edit", "read", "shell", "todo"))


def test_fitting_arguments_come_back_as_they_are() -> None:
    edits = [{"old": "a", "new": "b", "all": True}, {"path": "y", "old": "", "new": "\u2028\x85"}]
    assert parse(json.dumps({"path": "x", "edits": edits}), EDIT) == {"path": "x", "edits": edits}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"path":"src/ma', "Unterminated string starting at line 1 column 9 (character 8)"),
        ('{"path":"src/ma', "the text was cut off"),
        ('{"path":"a"', "the text was cut off"),
        ('{"path":"a",b":2}', "line 1 column 13 (character 12), near "),
        ('{\n"path":"a\nb"}', "Invalid control character at line 2 column 10"),
        ('{"path":"a\x00b"}', "Invalid control character"),
        ('{"path":"a","lines":NaN}', "NaN is no JSON number"),
        ('{"path":"a","lines":-Infinity}', "-Infinity is no JSON number"),
        ('{"path":"a","path":"b"}', "the field 'path' is given twice"),
        ('{"path":"\\ud83d"}', "half a surrogate pair at character 0"),
        ('{"path":"\\uDC00"}', "half a surrogate pair"),
        ('{"path":"a","\\udc00":1}', "half a surrogate pair"),
        ('{"path":"\udce9"}', "half a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ('{"path":' * 100_000, "nested too deeply"),
        ('{"lines":' + "1" * 5000 + "}", "a number in it is too long"),
        ('{"path":"a"} {"path":"b"}', "Extra data at line 1 column 14"),
        ("x", "Expecting value at line 1 column 1"),
        ('"path"', "Expecting value"),
        ("[1]", "must be one JSON object, not an array"),
        ("null", "must be one JSON object, not null"),
        ("{}", '"path" is missing'),
        ("", '"path" is missing'),
        ('{"path":null}', '"path" is missing'),
        ('{"path":["a"]}', '"path" must be a string, not an array'),
        ('{"path":true}', '"path" must be a string, not a boolean'),
        ('{"path":"a","lines":"many"}', "\"lines\" must be a whole number, not the text 'many'"),
        ('{"path":"a","lines":1.5}', '"lines" must be a whole number, not 1.5'),
        ('{"path":"a","lines":1e999}', '"lines" must be a whole number, not a number of more than 15 digits'),
        ('{"path":"a","lines":true}', '"lines" must be a whole number, not true'),
        ('{"path":"a","lines":[1]}', '"lines" must be a whole number, not an array'),
        ('{"path":"a","colour":1}', "unknown field 'colour' (known: path, from_line, lines)"),
    ],
)
def test_broken_arguments_are_named_with_what_was_expected(raw: str, said: str) -> None:
    error = parse(raw, READ)
    assert isinstance(error, str)
    assert said in error
    assert error.endswith(' Expected: {"path": string, "from_line"?: integer, "lines"?: integer}')
    assert len(error) < 600
    error.encode()


def test_errors_inside_lists_name_their_place() -> None:
    error = parse('{"path":"a","edits":[{"old":"x","new":"y"},{"old":"x","colour":1}]}', EDIT)
    assert isinstance(error, str)
    assert "unknown field 'edits[1].colour' (known: old, new, all, path)" in error
    assert '"edits[1].new" is missing' in error


def test_two_megabytes_are_no_trouble() -> None:
    content = "x\n" * 1_000_000
    assert parse(json.dumps({"path": "a", "content": content}), SCHEMAS["write"]) == {"path": "a", "content": content}


@pytest.mark.parametrize(
    ("schema", "raw", "fields"),
    [
        (READ, '{"path":"a","from_line":"5"}', {"path": "a", "from_line": 5}),
        (READ, '{"path":"a","from_line":5.0}', {"path": "a", "from_line": 5}),
        (READ, '{"path":7,"lines":null}', {"path": "7"}),
        (READ, '{"file_path":"a","offset":3,"limit":4}', {"path": "a", "from_line": 3, "lines": 4}),
        (READ, json.dumps('{"path":"a"}'), {"path": "a"}),
        (SHELL, '{"cmd":"ls","timeout_s":"1.5"}', {"command": "ls", "timeout_s": 1.5}),
        (EDIT, '{"path":"a","old":"x","new":"y"}', {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        (
            EDIT,
            '{"file_path":"a","old_string":"x","new_string":"y","replace_all":"true"}',
            {"path": "a", "edits": [{"old": "x", "new": "y", "all": True}]},
        ),
        (EDIT, '{"edits":{"path":"a","old":"x","new":"y"}}', {"edits": [{"path": "a", "old": "x", "new": "y"}]}),
        (
            EDIT,
            json.dumps({"path": "a", "edits": json.dumps([{"old": "x", "new": "y"}])}),
            {"path": "a", "edits": [{"old": "x", "new": "y"}]},
        ),
        (
            LIST,
            '{"todos":[{"content":"a","status":"in_progress"},{"text":"b","state":"DONE"}]}',
            {"items": [{"text": "a", "state": "doing"}, {"text": "b", "state": "done"}]},
        ),
    ],
)
def test_harmless_slips_are_repaired(schema: str, raw: str, fields: dict[str, object]) -> None:
    assert parse(raw, schema) == fields


def test_a_repair_never_overrides_a_field_that_is_there() -> None:
    error = parse('{"path":"a","file_path":"b"}', READ)
    assert isinstance(error, str)
    assert "unknown field 'file_path'" in error


def test_content_that_looks_like_json_stays_text() -> None:
    assert parse('{"path":"a.json","content":"[1]"}', SCHEMAS["write"]) == {"path": "a.json", "content": "[1]"}


def test_a_state_that_is_none_lists_those_that_are() -> None:
    error = parse('{"items":[{"text":"a","state":"later"}]}', LIST)
    assert isinstance(error, str)
    assert '"items[0].state" must be "open"|"doing"|"done", not \'later\'' in error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["path", "edits", "old", "x"]), inner),
    max_leaves=12,
)


@given(st.one_of(st.text(), JSON.map(json.dumps)), st.sampled_from(sorted(SCHEMAS)))
def test_any_text_gives_fields_or_a_sendable_error(raw: str, name: str) -> None:
    found = parse(raw, SCHEMAS[name])
    assert isinstance(found, dict | str)
    json.dumps(found).encode()


@given(JSON.filter(lambda value: isinstance(value, dict)), st.data())
def test_every_cut_of_an_object_is_an_error(value: object, data: st.DataObject) -> None:
    raw = json.dumps({"path": "a", "edits": [{"old": "x", "new": "y"}], "x": value})
    cut = data.draw(st.integers(1, len(raw) - 1))
    assert isinstance(parse(raw[:cut], EDIT), str)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("Read", "read"),
        ("SHELL", "shell"),
        ("Bash", "shell"),
        ("str_replace", "edit"),
        ("read_file", "read"),
        ("TodoWrite", "todo"),
        ("greb", "grep"),
        ("teleport", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_a_wrong_name_leads_to_the_nearest_tool(wrong: str, meant: str | None) -> None:
    assert nearest(wrong, TOOLS) == meant


def test_a_shape_shows_what_is_optional() -> None:
    assert shape(json.loads(LIST)) == '{"items": [{"text": string, "state": "open"|"doing"|"done"}, ...]}'


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("1e999", "a number of more than 15 digits"),
        ("-1e999", "a number of more than 15 digits"),
        ("1e15", "a number of more than 15 digits"),
        ("9" * 4000, "a number of more than 15 digits"),
        ("true", "true"),
        ("false", "false"),
        ('"NaN"', "the text 'NaN'"),
        ('"Infinity"', "the text 'Infinity'"),
        ('"soon"', "the text 'soon'"),
        ("[1]", "an array"),
    ],
)
def test_a_wrong_number_is_told_by_what_is_wrong_with_it(raw: str, said: str) -> None:
    error = parse(f'{{"command":"x","timeout_s":{raw}}}', SHELL)
    assert isinstance(error, str)
    assert f'Wrong arguments: "timeout_s" must be a number, not {said}.' in error
