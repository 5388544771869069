"""The table of what could go wrong: each test that it names is there, and each case that a test cites is in it."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE = (TESTS.parent / "docs" / "cases.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d{3}) \| ", re.MULTILINE)
CITED = re.compile(r"\b[Cc]ases? (\d{3}(?:, \d{3})*)")


def test_each_test_that_the_table_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", TABLE)
    assert len(named) > 80
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"def {name}\(", (TESTS / file).read_text(encoding="utf-8"))
    ]
    assert missing == []


def test_each_case_cited_by_a_test_is_in_the_table_once() -> None:
    rows = ROW.findall(TABLE)
    assert rows == sorted(set(rows))
    cited = {
        number
        for path in TESTS.rglob("*.py")
        for found in CITED.findall(path.read_text(encoding="utf-8"))
        for number in found.split(", ")
    }
    assert cited - set(rows) == set()
