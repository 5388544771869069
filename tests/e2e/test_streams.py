"""Standard streams as scripts and schedulers hand them over: open, closed, full, cut off. It never waits for them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.e2e.desk import PIERIA, Desk, ask, say, shell


def by_shell(desk: Desk, command: str) -> tuple[int, bytes, str]:
    """Run a line of bash in which $P is the program."""
    done = subprocess.run(
        ["bash", "-c", command],
        env={**desk.environ, "P": PIERIA}, cwd=desk.repo, stdin=subprocess.DEVNULL, capture_output=True, timeout=30,
        check=False,
    )  # fmt: skip
    words = done.stderr.decode()
    assert "Traceback" not in words
    assert "Exception" not in words
    return done.returncode, done.stdout, words


def test_a_prompt_given_never_waits_for_stdin(desk: Desk) -> None:  # case 116
    desk.commit({})
    desk.answers(say("Done."))
    end, keep = os.pipe()
    try:
        assert desk.exec("hi", stdin=end).out == b"Done.\n"
    finally:
        os.close(end)
        os.close(keep)
    for given in ("<&-", "</dev/null", "< a.txt"):
        (desk.repo / "a.txt").write_text("other words")
        assert by_shell(desk, f"$P exec hi --quiet {given}") == (0, b"Done.\n", "")
    assert {log.data("prompt.submitted")[0]["text"] for log in desk.logs()} == {"hi"}


def test_a_dash_reads_stdin_and_says_so_when_there_is_nothing(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("Done."))
    for given, said in (("<&-", "closed"), ("</dev/null", "empty")):
        code, out, err = by_shell(desk, f"$P exec - {given}")
        assert (code, out, said in err, "hint:" in err) == (2, b"", True, True)
    assert desk.logs() == []


def test_closed_and_full_streams_lose_no_session(desk: Desk) -> None:  # case 116
    desk.commit({})
    desk.answers(ask(shell("echo hi; echo ho >&2")), say("Done."))
    flags = "--mode full"
    assert by_shell(desk, f"$P exec hi {flags} >&-")[0] == 0
    assert by_shell(desk, f"$P exec hi {flags} 2>&-") == (0, b"Done.\n", "")
    assert by_shell(desk, f"$P exec hi {flags} <&- >&- 2>&-") == (0, b"", "")
    assert by_shell(desk, f"$P exec hi {flags} 2>/dev/full") == (0, b"Done.\n", "")
    code, _, err = by_shell(desk, f"$P exec hi {flags} >/dev/full")
    assert (code, "the output can't be written: No space left" in err) == (1, True)
    for verb in ("sessions", "exec --help", "--version"):
        assert by_shell(desk, f"$P {verb} >&-")[0] == 0
        assert by_shell(desk, f"$P {verb} >/dev/full")[0] == 1
    results = [log.results() for log in desk.logs()]
    assert results == [{"lead.1.0": "hi\nho\n[exit 0]"}] * 5
    assert [log.types()[-1] for log in desk.logs()] == ["session.closed"] * 5


def test_a_reader_who_leaves_ends_it_quietly_and_stops_what_runs(desk: Desk) -> None:
    desk.answers(ask(shell("touch up; sleep 60"), text="Before the command."), say("Done."))
    begun = []
    for number, words in enumerate((("--json",), ("--json", "--progress"))):
        place = desk.place(f"place{number}")
        end, ours = os.pipe()
        going = desk.begin("exec", "hi", "--mode", "full", "--quiet", *words, stdout=ours, cwd=place)
        os.close(ours)
        begun.append((going, place, end))
    for _, place, end in begun:
        desk.until((place / "up").exists)
        os.read(end, 64)
        os.close(end)
    for going, place, _ in begun:
        done = going.end(12)
        assert (done.code, done.err) == (141, "")
        assert desk.log_of(place).data("session.closed")[-1] == {
            "outcome": "interrupted", "exit_code": 141, "reason": "nobody reads the output any more",
        }  # fmt: skip
        assert desk.pieria("resume", "--last", cwd=place).out == b"Done.\n"
    assert desk.left() == []


def test_head_gets_its_lines_and_nobody_complains(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("true")), say("Done.\n" * 50_000))
    piped = "; echo ${PIPESTATUS[0]} >&2"
    code, out, err = by_shell(desk, f"$P exec hi --json --quiet --mode full | head -1{piped}")
    assert (out.count(b"\n"), err.strip() in ("141", "0")) == (1, True)
    code, out, err = by_shell(desk, f"$P exec hi --quiet --mode full | head -1{piped}")
    assert (code, out, err) == (0, b"Done.\n", "141\n")
    id = desk.logs()[1].id
    for verb in ("sessions --json", f"log show {id} --json"):
        code, out, err = by_shell(desk, f"$P {verb} | true{piped}")
        assert err in ("141\n", "0\n")


def test_it_works_without_home_terminal_and_path(desk: Desk) -> None:  # case 116
    desk.commit({"a.txt": "hi\n"})
    desk.answers(ask(shell("echo $TERM"), {"name": "edit", "arguments": EDIT}), say("Done."))
    bare = {"HOME": None, "TERM": None, "LANG": "C", "XDG_STATE_HOME": str(desk.home / ".local/state")}
    done = desk.exec("hi", environ=bare)
    assert (done.code, done.out) == (0, b"Done.\n")
    assert desk.log.results()["lead.1.0"] == "dumb\n[exit 0]"
    assert (desk.repo / "a.txt").read_text() == "ho\n"
    code, out, err = by_shell(desk, f"env -i {' '.join(needed(desk))} $P exec hi --mode full")
    assert (code, out) == (0, b"Done.\n"), err


EDIT = {"path": "a.txt", "edits": [{"old": "hi", "new": "ho"}]}


def needed(desk: Desk) -> list[str]:
    names = ("PIERIA_MODEL", "PIERIA_BASE_URL", "PYTHONPATH")
    return [f"XDG_STATE_HOME={desk.home}/.local/state"] + [
        f"{name}={desk.environ[name]}" for name in names if name in desk.environ
    ]


def test_trust_and_sessions_without_a_home_say_what_to_set(desk: Desk) -> None:
    (desk.repo / ".pieria").mkdir()
    Path(desk.repo, ".pieria/config.toml").write_text('mode = "ask"\n')
    done = desk.pieria("trust", "--yes", environ={"HOME": None})
    assert (done.code, "XDG_STATE_HOME" in done.err) == (2, True)
