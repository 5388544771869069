"""The tests test the source that they are meant to: a copy with a planted mistake, or the one beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pieria


def test_the_source_under_test_is_the_one_that_was_asked_for() -> None:
    place = os.environ.get("PIERIA_SOURCE") or Path(__file__).resolve().parents[2] / "src"
    assert Path(pieria.__file__).resolve().parents[1] == Path(place).resolve()
