"""Writes docs/reference from the code, so that the reference can't say something else than the program does.

`--check` compares instead of writing, and exits 1 when a page is stale.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

import msgspec.inspect

from pieria.core.events import RESERVED, TABLE
from pieria.core.events.row import Row

REFERENCE = Path(__file__).resolve().parent / "reference"

EVENTS_HEAD = """\
<!-- Generated from src/pieria/core/events by `./dev docs`. Change it there. -->

# Events

Every type of record that a log may hold. *Written by* names the place that makes it. A *barrier* record
is on disk before anything that follows from it starts; a *relaxed* one follows within 250 ms. A type
that *opens* an operation is an intent, one that *closes* it an outcome; *recovery* says what becomes of
an intent without outcome, or of the fact itself, when a session is opened again. A name is never given a
second meaning; a changed shape is a new `v`.
"""


def events_page() -> str:
    """Return the reference of the event table as Markdown."""
    overview = [
        "| type | v | written by | durability | opens or closes | recovery |",
        "|---|---|---|---|---|---|",
        *(overview_line(row) for row in TABLE),
    ]
    fields = [part for row in TABLE for part in section(row)]
    reserved = [f"| `{name}` | {meaning} |" for name, meaning in sorted(RESERVED.items())]
    later = [
        "## Reserved names",
        "",
        "Settled for features that are not built yet: no program may use them for anything else.",
        "",
        "| type | will record |",
        "|---|---|",
        *reserved,
    ]
    return (
        "\n".join([EVENTS_HEAD, *overview, "", "## Fields", "", *fields, *(later if reserved else [])]).rstrip() + "\n"
    )


def overview_line(row: Row) -> str:
    pairs = ["opens"] if row.opens else []
    pairs += [f"closes `{name}`" for name in row.closes]
    cells = (f"[`{row.name}`](#{anchor(row.name)})", str(row.v), ", ".join(row.writers), row.barrier)
    return "| " + " | ".join((*cells, ", ".join(pairs) or "–", row.recovery)) + " |"


def anchor(name: str) -> str:
    """Return the anchor that renderers of Markdown give the heading of a type: its dots are dropped."""
    return name.replace(".", "")


def section(row: Row) -> list[str]:
    """Return the part of the page for one type: purpose and fields."""
    purpose = " ".join((row.cls.__doc__ or "").split())
    described = msgspec.inspect.type_info(row.cls)
    assert isinstance(described, msgspec.inspect.StructType)
    hints = {name: spelt(hint) for name, hint in written_types(row).items()}
    table = [
        f"| `{field.encode_name}` | `{hints[field.name]}` | {'yes' if field.required else 'no'} |"
        for field in described.fields
    ]
    head = ["| field | type | always there |", "|---|---|---|"] if table else ["No fields."]
    return [f"### {row.name}", "", *([purpose, ""] if purpose else []), *head, *table, ""]


def written_types(row: Row) -> dict[str, str]:
    """Return the annotations of a class and its bases as they are written."""
    found: dict[str, str] = {}
    for base in reversed(row.cls.__mro__):
        found.update({name: str(hint) for name, hint in inspect.get_annotations(base).items()})
    return found


def spelt(hint: str) -> str:
    """Return a type as a cell of a table can hold it."""
    return hint.replace("|", "\\|")


PAGES = {"events.md": events_page}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev docs", description="Write docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when a page is stale")
    check = parser.parse_args().check
    stale = []
    for name, page in PAGES.items():
        path, text = REFERENCE / name, page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(f"docs/reference/{name}")
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"stale: {name}" if check else f"wrote {name}", file=sys.stderr)
    if stale and check:
        print("hint: run ./dev docs and commit what it writes", file=sys.stderr)
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
