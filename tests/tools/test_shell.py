"""`shell` finds plain words without doubt or not at all, and words every end so that it can't be mistaken."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pieria.core.ports import Ended, Place
from pieria.core.values import Details, Examined
from pieria.tools.shell import Shell, words
from tests.tools.conftest import Bench

PLACE = Place(root="/r")


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        ("ls", ("ls",)),
        ("  git   diff --stat\n", ("git", "diff", "--stat")),
        ("grep -rn 'a b|c; $x' src/a.py", ("grep", "-rn", "a b|c; $x", "src/a.py")),
        ('echo "it\'s" ""', ("echo", "it's", "")),
        ("a'b'\"c\"d", ("abcd",)),
        ("env A=1 make CC=gcc", ("env", "A=1", "make", "CC=gcc")),
        ("echo 'é'", ("echo", "é")),
        ("''", ("",)),
    ],
)
def test_plain_commands_have_words(command: str, plain: tuple[str, ...]) -> None:
    assert words(command) == plain


@pytest.mark.parametrize(
    "command",
    [
        *("a; b", "a && b", "a | b", "a & b", "a &", "a > f", "a < f", "a 2>&1", "(a)", "{ a; }", "! a", "a # b"),
        *("a\nb", "a\rb", "a\\\nb", "echo $x", 'echo "$x"', "echo `b`", 'echo "`b`"', "echo $(b)", "echo $'\\n'"),
        *("ls *.py", "ls ?", "ls [a]", "cd ~", "echo {a,b}", "A=1 make", "=ls x", "echo a\\ b", '"a\\"b"', '"!x"'),
        *("'open", '"open', "echo 'a\nb'", "time ls", "if true", "while true", "[[ a ]]", "function f", "%1", "x ^y"),
        *("ls\u00a0-l", "ls\u3000-l", "é", "\x1b[2Kls", "ls '\u202e'", "", "   ", "cat <<E", "a\vb", "a\fb"),
    ],
)
def test_whatever_may_be_syntax_has_none(command: str) -> None:
    assert words(command) is None


@settings(max_examples=60, deadline=None)
@given(st.text("ab-=/.'\" \t$`\\!*?[]{}~#;|&<>()%^+,:@é\n", max_size=14))
def test_words_are_what_a_shell_makes_of_them(text: str) -> None:
    plain = words(f"printf '%s.' {text}")
    if plain is None:
        return
    done = subprocess.run(["/bin/sh", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True)
    expected = [part.decode() for part in done.stdout.split(b"\0")[:-1]]
    assert list(plain[2:]) == expected or (not plain[2:] and expected == [""])
    assert list(plain) == shlex.split(f"printf '%s.' {text}")


def test_the_action_is_the_command_its_place_and_its_limit(bench: Bench) -> None:
    facts = bench.examine("shell", command="make  test", timeout_s=5)
    assert facts == Examined(
        access="shell",
        action=facts.action,
        command="make  test",
        words=("make", "test"),
        cwd=str(bench.root),
        timeout_s=5.0,
    )
    others = [
        bench.examine("shell", command="make test", timeout_s=5),
        bench.examine("shell", command="make  test", timeout_s=6),
        Shell().examine({"command": "make  test", "timeout_s": 5}, PLACE),
    ]
    assert len({facts.action, *(other.action for other in others)}) == 4


def test_a_limit_is_ten_minutes_at_most_and_by_default(bench: Bench) -> None:
    assert bench.examine("shell", command="ls").timeout_s == 600
    assert bench.examine("shell", command="ls", timeout_s=10_000).timeout_s == 600
    assert bench.examine("shell", command="ls", timeout_s=0).error == "timeout_s must be more than 0."


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "The command is empty."),
        (" \n\t", "The command is empty."),
        ("ls \0", "A command can't hold a NUL character."),
        ("x" * 100_001, "The command is over 100000 bytes: write a file and run that."),
    ],
)
def test_commands_that_cannot_run_are_refused(bench: Bench, command: str, said: str) -> None:
    assert bench.examine("shell", command=command).error == said


FACTS = Examined(access="shell", action="", command="x", cwd="/r", timeout_s=600)


@pytest.mark.parametrize(
    ("outcome", "text", "error"),
    [
        (Ended(0, b"hi\n", output_bytes=3), "hi\n[exit 0]", False),
        (Ended(0, b"hi", output_bytes=2), "hi\n[exit 0]", False),
        (Ended(0), "[exit 0, no output]", False),
        (Ended(1, b"no\n", output_bytes=3), "no\n[exit 1]", True),
        (Ended(0, b"a\n", output_bytes=2, reattached=True), "a\n[exit 0, collected after a restart]", False),
        (Ended(0, b"a\n", output_bytes=2, killed=("sleep(7)",)), "a\n[exit 0; stopped: sleep(7)]", False),
        (Ended(None, signal="SIGSEGV"), "[ended by SIGSEGV, no output]", True),
        (
            Ended(None, b"a\n", output_bytes=2, timed_out=True, killed=("sleep(123)", "cat(9)")),
            "a\n[timed out after 600 s; stopped: sleep(123), cat(9)]",
            True,
        ),
        (
            Ended(None, output_bytes=70_000_000, too_much=True),
            "[... 70000000 bytes left out ...]\n[stopped: too much output (70.0 MB); send it to a file or filter it]",
            True,
        ),
        (
            Ended(None, b"half\n", output_bytes=5, stopped=True, killed=("make(5)",)),
            "half\n[interrupted: it may have done part of its work; stopped: make(5)]",
            True,
        ),
        (
            Ended(None, b"half", output_bytes=4, unknown=True),
            (
                "half\n[interrupted: outcome unknown. It may have run wholly, in part or not at all: "
                "check what it changed before you repeat it]"
            ),
            True,
        ),
        (Ended(None, never_ran=True), "[never ran: nothing happened; repeat it if it is still needed]", True),
    ],
)
def test_every_end_has_its_words(outcome: Ended, text: str, *, error: bool) -> None:
    result = Shell().ended(FACTS, outcome)
    assert (result.text, result.error) == (text, error)


def test_details_hold_the_facts_of_the_end() -> None:
    outcome = Ended(None, b"a", b"b", 9, "abc", signal="SIGTERM", timed_out=True, killed=("x(1)",), reattached=True)
    assert Shell().ended(FACTS, outcome).details == Details(
        signal="SIGTERM",
        timed_out=True,
        output_bytes=9,
        output_sha256="abc",
        killed=("x(1)",),
        reattached=True,
    )
