"""Commands of the model: bounded, cleaned, ended with all that they started, and blind to the person's keys."""

from __future__ import annotations

import os
import re
import sys
import time

from tests.e2e.desk import Desk, Json, ask, call, say, shell

MEASURED = (
    sys.executable, "-I", "-c",
    (
        "import resource, subprocess, sys\n"
        "code = subprocess.call(sys.argv[2:])\n"
        "with open(sys.argv[1], 'w') as file:\n"
        "    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n"
        "sys.exit(code)"
    ),
)  # fmt: skip
"""Before a command: the most memory that it held at once, in KB, goes to the file named next."""


def outputs(desk: Desk, *commands: str | Json) -> list[str]:
    """Let a model run these commands at once; return what it was told."""
    desk.commit({})
    desk.answers(ask(*[shell(each) if isinstance(each, str) else each for each in commands]), say("Done."))
    assert desk.exec("go").code == 0
    results = desk.log.results()
    return [results[f"lead.1.{number}"] for number in range(len(commands))]


def test_the_limit_ends_the_whole_tree_and_says_what_was_killed(desk: Desk) -> None:  # cases 110, 111
    forks = "for i in 1 2 3; do (sleep 301; :) & done; echo begun; wait"
    began = time.monotonic()
    tree, deaf, away, pipe = outputs(
        desk,
        shell(forks, timeout_s=1),
        shell("trap '' TERM INT; echo deaf; while :; do sleep 302; done", timeout_s=1),
        shell("echo away; setsid sleep 303 & sleep 304", timeout_s=1),
        shell("grep -r x / 2>/dev/null | sleep 305", timeout_s=1),
    )
    assert time.monotonic() - began < 12
    assert desk.left() == []
    for text, word in ((tree, "begun"), (deaf, "deaf"), (away, "away"), (pipe, "")):
        assert text.startswith(word)
        assert "timed out after 1 s" in text
        assert "sleep" in text.split("stopped:")[1]


def test_a_command_has_no_terminal_and_no_input(desk: Desk) -> None:
    stdin, tty, read, editor = outputs(
        desk, "cat; echo $?", "tty; test -t 0 || echo none", "read x || echo nothing", "git commit --allow-empty"
    )
    assert stdin == "0\n[exit 0]"
    assert "none" in tty
    assert read == "nothing\n[exit 0]"
    assert re.search(r"\[exit [1-9]", editor)


def test_output_is_clean_text_and_the_request_holds_exactly_what_the_log_does(desk: Desk) -> None:  # case 113
    random, bad, colour, bar, split, title = outputs(
        desk,
        "head -c 100000 /dev/urandom",
        r"printf 'a\377\376\000b'",
        r"printf '\033[1;31mred\033[0m \033]0;title\007plain'",
        r"for i in $(seq 1 100); do printf 'at %d%%\r' $i; done",
        r"printf '\346\227'; sleep 0.3; printf '\245\n'",
        r"printf '\033[2J\033[H\033[?1049h\b\b\b'",
    )
    for text in (random, bad, colour, bar, split, title):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert bad.startswith("a��b")
    assert colour.startswith("red plain")
    assert bar.startswith("at 100%")
    assert split.startswith("日\n")
    told = [message["content"] for message in desk.log.messages() if message["role"] == "tool"]
    assert told == [random, bad, colour, bar, split, title]


def test_huge_output_keeps_head_and_tail_and_little_else(desk: Desk) -> None:  # cases 013, 114
    desk.commit({})
    desk.answers(
        ask(shell("seq 1 3000000"), shell("head -c 30000000 /dev/zero | tr '\\0' x"), shell("yes | head -c 100000000")),
        say("Done."),
        say("More."),
    )
    peak = desk.base / "peak"
    assert desk.exec("go", before=(*MEASURED, str(peak))).code == 0
    lines, line, endless = (desk.log.results()[f"lead.1.{number}"] for number in range(3))
    assert lines.startswith("1\n2\n3\n")
    assert lines.endswith("2999999\n3000000\n[exit 0]")
    assert "bytes left out" in lines
    assert "bytes left out" in line
    assert "too much output" in endless
    assert max(map(len, (lines, line, endless))) < 40_000
    assert desk.log.path.stat().st_size < 400_000
    assert sum(path.stat().st_size for path in desk.sessions.rglob("*") if path.is_file()) < 500_000  # spools are gone
    assert desk.pieria("exec", "more", "--continue").out == b"More.\n"
    assert int(peak.read_text()) < 80_000  # KB; the program alone has about 35 MB


def test_what_cannot_start_is_a_result(desk: Desk) -> None:
    empty, nul, long, missing = outputs(desk, " ", "echo a\0b", "echo " + "x" * 200_000, "no-such-program --now")
    assert "empty" in empty
    assert "NUL" in nul
    assert "bytes" in long
    assert "[exit 127]" in missing


def test_a_command_can_not_hurt_the_log(desk: Desk) -> None:
    (told,) = outputs(
        desk, "ls /proc/$PPID/fd -l; for n in 3 4 5 6 7 8 9; do echo junk >&$n; done 2>/dev/null; kill -9 $$"
    )
    assert "SIGKILL" in told
    assert ".jsonl" not in told  # no descriptor of the log is inherited
    assert desk.pieria("log", "verify", desk.log.id).code == 0


def test_calls_of_one_answer_run_side_by_side_but_changes_come_one_after_another(desk: Desk) -> None:
    desk.commit({"n.txt": "0\n"})
    edits = [call("edit", path="n.txt", edits=[{"old": f"{n}\n", "new": f"{n + 1}\n"}]) for n in range(5)]
    desk.answers(ask(*[shell("sleep 1.2")] * 5), ask(*edits, shell("cat n.txt")), say("Done."))
    done = desk.exec("go")
    assert done.code == 0
    assert done.wall_s < 5
    assert (desk.repo / "n.txt").read_text() == "5\n"
    assert desk.log.results()[f"{desk.log.of('step.finished')[1]['op']}.5"] == "5\n[exit 0]"


def test_commands_of_one_session_see_the_working_folder_and_a_plain_environment(desk: Desk) -> None:
    desk.environ |= {"SECRET_THING": "x", "LD_PRELOAD_NOT": "y", "http_proxy": "http://user:pw@host"}
    where, env = outputs(desk, "pwd -P", "env")
    assert where == f"{os.path.realpath(desk.repo)}\n[exit 0]"
    names = {line.partition("=")[0] for line in env.splitlines()}
    assert not names & {
        "SECRET_THING",
        "LD_PRELOAD_NOT",
        "http_proxy",
        "PIERIA_API_KEY",
        "PIERIA_MODEL",
        "PIERIA_BASE_URL",
    }
    assert {"PATH", "HOME", "PIERIA_JOB"} <= names
