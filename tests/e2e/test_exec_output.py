"""What `pieria exec` prints: the answer to standard output, everything else to standard error."""

from __future__ import annotations

import re

import pytest

from tests.e2e.desk import Desk, ask, call, say, shell

VERBS = ("exec", "resume", "sessions", "log", "replay", "trust", "demo")


def test_the_answer_goes_to_stdout_and_all_else_to_stderr(desk: Desk) -> None:
    desk.commit({"a.txt": "hello\n"})
    desk.answers(
        ask(call("read", path="a.txt"), shell("printf '\\033[31mred'"), text="I look."), say("It says hello – 好.")
    )
    done = desk.exec("what does a.txt say?")
    assert done.code == 0
    assert done.text == "It says hello – 好.\n"
    assert desk.log.id in done.err
    for part in ("I look.", "read a.txt", "shell printf", "exit 0"):
        assert part in done.err
    assert "\x1b" not in done.err  # no colour, no cursor movement without a terminal


def test_json_prints_the_logs_records_in_order_without_the_chain(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("seq 1 2000")), say("Counted."))
    done = desk.exec("count", "--json", "--quiet")
    chain = ("prev", "hash", "durable")
    wanted = [{name: value for name, value in record.items() if name not in chain} for record in desk.log.records]
    assert done.lines == wanted
    assert [line["seq"] for line in done.lines] == list(range(len(wanted)))
    assert "blob" in {line["type"] for line in done.lines}
    assert done.err == ""


def test_progress_adds_the_text_as_it_comes_and_nothing_to_the_log(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("true"), text="First I look around."), say("That is all there is."))
    lines = desk.exec("look", "--json", "--progress").lines
    progress = [line for line in lines if line["type"] == "x.progress"]
    assert "".join(line["text"] for line in progress) == "First I look around.That is all there is."
    assert {line["agent"] for line in progress} == {"lead"}
    assert len(progress) > 2
    assert [line["seq"] for line in lines if line["type"] != "x.progress"] == list(range(len(desk.log.records)))
    first = lines.index(progress[0])
    assert "step.finished" not in {line["type"] for line in lines[:first]}


@pytest.mark.needs_strace
def test_records_are_printed_only_once_they_are_durable(desk: Desk) -> None:
    """What the kernel saw: a record's line goes out after a sync that began when the record was written."""
    desk.commit({})
    desk.answers(ask(shell("echo hi")), say("Done."))
    trace = desk.base / "trace"
    strace = ("strace", "-f", "-s", "24", "-e", "trace=write,fdatasync", "-o", str(trace))
    done = desk.exec("wait", "--json", "--quiet", before=strace)
    assert done.code == 0
    written = durable = -1
    syncing: dict[str, int] = {}
    printed = []
    for line in trace.read_text().splitlines():
        thread = line.split()[0]
        if "fdatasync(" in line:
            syncing[thread] = written
        if "fdatasync" in line and line.endswith("= 0"):
            durable = syncing[thread]
        if found := re.search(r'write\((\d+), "\{\\"seq\\":(\d+),', line):
            if found[1] == "1":
                printed.append(int(found[2]))
                assert printed[-1] <= durable, line
            else:
                written = max(written, int(found[2]))
    assert printed == list(range(len(desk.log.records)))


def test_quiet_says_nothing_but_the_answer(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("echo loud"), text="Words on the way."), say("Done."))
    done = desk.exec("be still", "--quiet")
    assert (done.code, done.out, done.err) == (0, b"Done.\n", "")


def test_a_prompt_comes_as_an_argument_from_a_file_or_from_stdin_and_arrives_the_same(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("One."))
    words = "Grüße, 世界 🎉\n\ttwo lines\r\nthree\n"
    (desk.base / "prompt.txt").write_bytes(words.encode())
    for way in ((words,), ("-",), ("--prompt-file", str(desk.base / "prompt.txt"))):
        assert desk.pieria("exec", *way, stdin=words.encode()).code == 0
    assert [log.data("prompt.submitted")[0]["text"] for log in desk.logs()] == [words] * 3
    assert {log.messages()[-1]["content"] for log in desk.logs()} == {words}


def test_help_names_what_works_and_every_verb_explains_itself(desk: Desk) -> None:
    told = desk.pieria("--help").text
    named = [line.split()[0] for line in told.splitlines() if line.startswith("  ") and not line.startswith("  -")]
    assert tuple(named) == VERBS
    for verb in VERBS:
        assert desk.pieria(verb, "--help").text.startswith(f"usage: pieria {verb}")
    assert desk.pieria("--version").text.startswith("pieria ")


def test_the_demo_runs_by_itself_without_key_and_network(desk: Desk) -> None:
    bare = dict.fromkeys(("PIERIA_MODEL", "PIERIA_API_KEY"))
    done = desk.pieria("demo", environ=bare | {"TMPDIR": str(desk.base)}, cwd=desk.home)
    assert done.code == 0, done.err
    assert "all the same" in done.text
    assert desk.log.data("session.closed")[0]["outcome"] == "finished"
