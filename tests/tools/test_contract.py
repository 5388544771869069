"""What holds for every tool: its words are few, its looking is harmless, its errors are errors and not tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import msgspec
import pytest

from pieria.core.ports import Applied, Ended
from pieria.core.values import Examined, ToolResult
from pieria.tools.arguments import parse
from pieria.tools.base import fingerprint
from pieria.tools.kit import kit
from tests.tools.conftest import Bench
from tests.tools.real_files import RealFiles

TOOLS = kit(RealFiles(), known={}.get, search_path=os.environ["PATH"])
every = pytest.mark.parametrize("name", sorted(TOOLS))

CALLS: dict[str, dict[str, object]] = {
    "edit": {"path": "a", "edits": [{"old": "one", "new": "1"}]},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "o"},
    "read": {"path": "a"},
    "shell": {"command": "touch made"},
    "todo": {"items": [{"text": "x", "state": "doing"}]},
    "write": {"path": "new/b", "content": "x\n"},
}
PATHS: dict[str, dict[str, object]] = {
    "edit": {"edits": [{"old": "one", "new": "1"}]},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "o"},
    "read": {},
    "write": {"content": "x\n"},
}
FIELDS = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


def view(bench: Bench) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [bench.root, *bench.root.rglob("*")]
    }


def test_all_tools_together_are_told_in_few_words() -> None:
    said = [
        {
            "name": each.spec.name,
            "description": each.spec.description,
            "parameters": json.loads(str(each.spec.parameters)),
        }
        for each in TOOLS.values()
    ]
    assert len(json.dumps(said, separators=(",", ":"))) <= 4500
    assert list(TOOLS) == sorted(TOOLS) == ["edit", "glob", "grep", "read", "shell", "todo", "write"]


@every
def test_a_spec_is_complete_and_its_schema_is_of_the_kind_that_is_checked(name: str) -> None:
    spec = TOOLS[name].spec
    schema = json.loads(str(spec.parameters))
    assert (spec.name, spec.version, schema["type"]) == (name, 1, "object")
    assert spec.access in {"read", "edit", "shell", "note"}
    assert set(schema["required"]) <= set(schema["properties"])
    assert str(spec.parameters) == json.dumps(schema, separators=(",", ":"))


@every
def test_looking_is_repeatable_and_changes_nothing(bench: Bench, name: str) -> None:
    bench.put("a", "one\n")
    before = view(bench)
    first = bench.examine(name, **CALLS[name])
    assert first.error == ""
    assert bench.examine(name, **CALLS[name]) == first
    assert view(bench) == before
    assert first.access == TOOLS[name].spec.access
    assert len(first.action) == 64
    assert msgspec.json.decode(msgspec.json.encode(first), type=Examined) == first


def test_parts_of_an_action_do_not_run_together() -> None:
    spec = TOOLS["read"].spec
    parts: list[list[str | None]] = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["abc", None], ["ab", "c", ""]]
    assert len({fingerprint(spec, each) for each in parts}) == len(parts)


@every
def test_different_calls_are_different_actions(bench: Bench, name: str) -> None:
    bench.put("a", "one\n")
    other: dict[str, dict[str, object]] = {
        "edit": {"path": "a", "edits": [{"old": "one", "new": "2"}]},
        "glob": {"pattern": "?"},
        "grep": {"pattern": "o", "context": 1},
        "read": {"path": "a", "lines": 1},
        "shell": {"command": "touch made "},
        "todo": {"items": [{"text": "x", "state": "done"}]},
        "write": {"path": "new/b", "content": "x"},
    }
    assert bench.examine(name, **CALLS[name]).action != bench.examine(name, **other[name]).action


@pytest.mark.parametrize("name", sorted(PATHS))
@pytest.mark.parametrize("given", ["../out", "link/out", "/etc/hostname-of-nobody"])
def test_places_outside_are_flagged_with_their_real_path(bench: Bench, name: str, given: str) -> None:
    (bench.root / "link").symlink_to("..")
    (bench.root.parent / "out").write_text("one\n")
    facts = bench.examine(name, path=given, **PATHS[name])
    assert [path.inside for path in facts.paths] == [False]
    assert facts.paths[0].real == os.path.realpath(bench.root / given)


@pytest.mark.parametrize("name", sorted(PATHS))
@pytest.mark.parametrize("given", ["", " ", "a\0b", "x" * 300])
def test_paths_that_can_be_none_are_errors(bench: Bench, name: str, given: str) -> None:
    if given or name in {"read", "write"}:
        facts = bench.examine(name, path=given, **PATHS[name])
        assert "path" in str(facts.error).lower()


@every
def test_every_field_of_a_wrong_type_is_an_error_with_the_shape(name: str) -> None:
    schema = json.loads(str(TOOLS[name].spec.parameters))
    for field, of in schema["properties"].items():
        for wrong in ([[1]], {"x": 1}, True, "not it", 1.5):
            if of["type"] in {"string", "boolean"} and isinstance(wrong, str | bool | float):
                continue
            if of["type"] == "number" and isinstance(wrong, float):
                continue
            found = parse(json.dumps({**CALLS[name], field: wrong}), str(TOOLS[name].spec.parameters))
            assert isinstance(found, str), (field, wrong)
            assert "Expected: {" in found
    for field in schema["required"]:
        rest = {key: value for key, value in CALLS[name].items() if key != field}
        assert f'"{field}" is missing' in str(parse(json.dumps(rest), str(TOOLS[name].spec.parameters)))


@every
def test_results_are_bounded_and_fit_to_be_sent(bench: Bench, name: str) -> None:
    bench.put("a", "one " * 100_000 + "\n" + "o\n" * 100_000)
    bench.put("bad", b"\xff one\n" * 10_000)
    for n in range(300):
        bench.put(f"d/{n}" + "x" * 200, "one\n")
    tool, fields = bench.tools[name], bench.fields(name, CALLS[name])
    if name == "edit":
        fields["edits"] = [{"old": "one", "new": "1", "all": True}]
    facts = tool.examine(fields, bench.place)
    result: ToolResult
    match facts.access:
        case "edit":
            result = tool.applied(facts, Applied("done"))
        case "shell":
            result = tool.ended(facts, Ended(0, b"x\xff" * 50_000, b"y" * 500_000, 10_000_000))
        case _:
            result = tool.run(facts, fields, bench.place)
    assert isinstance(result.text, str)
    assert 0 < len(result.text.encode()) <= 66_000
    assert "\0" not in result.text


@every
def test_a_tool_is_not_asked_for_what_its_access_rules_out(bench: Bench, name: str) -> None:
    bench.put("a", "one\n")
    tool, facts = bench.tools[name], bench.examine(name, **CALLS[name])
    if facts.access in {"edit", "shell"}:
        with pytest.raises(AssertionError):
            tool.run(facts, {}, bench.place)
    if facts.access != "edit":
        with pytest.raises(AssertionError):
            tool.applied(facts, Applied("done"))
    if facts.access != "shell":
        with pytest.raises(AssertionError):
            tool.ended(facts, Ended(0))


def test_a_list_of_things_to_do_is_kept_in_the_result(bench: Bench) -> None:
    items = [{"text": "a", "state": "done"}, {"text": "b", "state": "doing"}, {"text": "c", "state": "open"}]
    result = bench.call("todo", items=items)
    assert result.text == "1 of 3 done; doing: b"
    assert msgspec.to_builtins(result.details.todo) == tuple(items)
    assert bench.text("todo", items=[]) == "The list is empty."
    assert bench.call("todo", items=[]).details.todo == ()
    assert bench.text("todo", items=[{"text": " ", "state": "open"}]) == "An item has no text."
    assert "at most 100 items" in bench.text("todo", items=[{"text": "x", "state": "open"}] * 101)


def test_the_kit_loads_nothing_that_is_slow() -> None:
    code = "import sys, pieria.tools.kit; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"subprocess", "tempfile", "difflib", "fnmatch", "json", "asyncio", "pathlib", "shutil", "dataclasses"}
    assert slow.isdisjoint(done.stdout.split())
    assert "pieria.tools.search" not in done.stdout.split()
