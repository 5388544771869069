"""Words for a terminal, and the markers of secrets."""

from __future__ import annotations

import pytest

from pieria.core.events.session import SettingsApplied
from pieria.core.markers import named_secrets
from pieria.core.policy import rule
from pieria.core.values import Examined
from pieria.headless.words import escaped, plain, shorten


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("\x1b[2K", "\\x1b[2K"),
        ("\u202eevil", "\\u202eevil"),
        ("\u2028", "\\u2028"),
        ("süß 漢字 🎉", "süß 漢字 🎉"),
    ],
)
def test_what_can_not_be_printed_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_an_answer_keeps_its_lines_and_loses_its_escapes() -> None:
    assert plain("a\n\tb\x1b]52;c;eA==\x07\r\n") == "a\n\tb\\x1b]52;c;eA==\\x07\\r\n"


def test_a_shortened_line_is_one_line() -> None:
    assert shorten("  a\nb  ") == "a\\nb"
    assert shorten("x" * 300, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("<<secret:A>> <<secret:B:json>> <<secret:A>>", ("A", "B")),
        ("<<secret:A", ()),
        ("<<secret:>>", ("",)),
        ("<<secret:<<secret:A>>", ("A",)),
    ],
)
def test_markers_name_their_secrets(text: str, names: tuple[str, ...]) -> None:
    assert named_secrets(text) == names


@pytest.mark.parametrize("mode", ["ask", "edits"])
def test_no_rule_lets_a_secret_out_unasked(mode: str) -> None:
    facts = Examined("shell", "x", command="echo <<secret:A>>", words=("echo", "<<secret:A>>"), secrets=("A",))
    settings = SettingsApplied(mode, allow=("shell(echo *)",))
    assert rule("shell", facts, settings).ruling == "ask"
