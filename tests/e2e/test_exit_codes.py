"""The exit code says how it ended: one table for people and scripts."""

from __future__ import annotations

import signal

from tests.e2e.desk import Desk, ask, call, say, shell

GONE = "http://127.0.0.1:9/v1"


def closing(desk: Desk) -> tuple[str, int]:
    end = desk.log.data("session.closed")[-1]
    return end["outcome"], end["exit_code"]


def test_1_when_the_turn_failed(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("", status=400, body={"error": {"message": "no such parameter"}}))
    done = desk.exec()
    assert done.code == 1
    assert closing(desk) == ("failed", 1)
    assert "no such parameter" in done.err
    assert "hint:" in done.err
    assert done.out == b""


WRONG = [
    (("frob",), "no verb"),
    (("exec",), "no prompt"),
    (("exec", ""), "empty"),
    (("exec", "x", "y"), "unrecognized"),
    (("exec", "x", "--mode", "wild"), "invalid choice"),
    (("exec", "x", "--allow", "fly(away)"), "no tool 'fly'"),
    (("exec", "x", "--max-steps", "0"), "whole number above 0"),
    (("exec", "x", "--timeout", "soon"), "number of seconds"),
    (("exec", "x", "--cwd", "/nowhere"), "no folder"),
    (("exec", "x", "--session", "2026", "--continue"), "give one"),
    (("exec", "x", "--session", ""), "empty"),
    (("exec", "x", "--continue"), "no session of this folder"),
    (("exec", "x", "--model", "scripted:/nowhere"), "can't be read"),
    (("exec", "x", "--model", "scripted:"), "no name"),
    (("exec", "x", "--base-url", "ftp://host"), "http://"),
    (("resume",), "name one session"),
    (("resume", "zzz"), "No session"),
    (("replay",), "name a log"),
]
"""Command lines that are wrong, and what is said of each."""


def test_2_when_the_command_line_is_wrong(desk: Desk) -> None:
    ended = desk.together(*[words for words, _ in WRONG], environ={"PIERIA_BASE_URL": GONE})
    for (words, said), done in zip(WRONG, ended, strict=True):
        assert (done.code, done.out, said in done.err) == (2, b"", True), (words, done)
    assert desk.logs() == []


def test_2_when_no_model_is_configured(desk: Desk) -> None:
    done = desk.pieria("exec", "x", environ={"PIERIA_MODEL": None})
    assert (done.code, "no model is configured" in done.err, "pieria demo" in done.err) == (2, True, True)
    done = desk.pieria("exec", "x")
    assert (done.code, "no base URL" in done.err) == (2, True)
    assert desk.logs() == []


def test_4_when_a_cap_was_reached_and_resume_goes_on_from_there(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    desk.answers(*[ask(shell(f"echo {n} >> n.txt"), text="On the way.") for n in range(4)], say("Done."))
    done = desk.exec("work", "--max-steps", "2")
    assert (done.code, done.out, closing(desk)) == (4, b"", ("capped", 4))  # words on the way are no answer
    assert "2 steps" in done.err
    assert "resume" in done.err
    assert desk.pieria("resume", "--last", "--mode", "full", "--max-steps", "1").code == 4
    done = desk.pieria("resume", "--last", "--mode", "full", "--max-tokens", "1")
    assert (done.code, "1 tokens" in done.err) == (4, True)
    assert desk.pieria("resume", "--last", "--mode", "full").out == b"Done.\n"
    assert (desk.repo / "n.txt").read_text() == "0\n1\n2\n3\n"
    assert len(desk.log.of("step.started")) == 5


def test_4_when_time_is_up_in_a_command_a_model_call_or_a_wait(desk: Desk) -> None:
    desk.commit({})
    late = say("", status=429, headers={"Retry-After": "1.8"})
    desk.answers(
        ask(shell("echo begun; sleep 60")),
        say("Done.", faults=[say("Half of it and more", stall_after_bytes=330), late]),
    )
    done = desk.exec("wait", "--timeout", "0.6")
    assert (done.code, closing(desk)) == (4, ("capped", 4))
    assert "time limit" in done.err
    (result,) = desk.log.results().values()
    assert "begun" in result
    assert "interrupted" in result
    assert desk.left() == []
    for _ in range(2):  # in the middle of an answer; then while the server wants us to wait
        done = desk.pieria("resume", "--last", "--timeout", "0.6")
        assert (done.code, closing(desk)) == (4, ("capped", 4))
    waits = {record["op"] for record in desk.log.of("timer.set") if record["data"]["purpose"] == "retry"}
    assert waits - {record["op"] for record in desk.log.of("timer.fired")}  # it was left before its end
    done = desk.pieria("resume", "--last")  # the wait goes on where it was, and ends when it would have
    assert (done.code, done.out) == (0, b"Done.\n")
    assert desk.log.data("step.lost")[-1]["reason"] == "capped"
    assert [data["attempt"] for data in desk.log.data("step.started")] == [1, 1, 2, 3]


def test_5_when_the_session_is_in_use_with_who_uses_it(desk: Desk) -> None:  # case 015
    desk.commit({})
    desk.answers(ask(shell("touch up; while [ ! -e go ]; do sleep 0.05; done")), say("Done."), say("More."))
    first = desk.begin("exec", "hold it", "--mode", "full")
    desk.until((desk.repo / "up").exists)
    before = desk.log.path.read_bytes()
    for words in (("exec", "--session", desk.log.id, "me too"), ("resume", desk.log.id), ("exec", "--continue", "x")):
        done = desk.pieria(*words)
        assert done.code == 5
        assert str(first.pid) in done.err
        assert "log follow" in done.err
    assert desk.log.path.read_bytes().startswith(before)  # its holder may add a mark
    assert "open" in desk.pieria("sessions").text
    assert desk.pieria("log", "verify", desk.log.id).code == 0
    (desk.repo / "go").touch()
    assert first.end().out == b"Done.\n"
    assert desk.pieria("exec", "--continue", "now me").out == b"More.\n"
    assert [record["epoch"] for record in desk.log.of("session.opened")] == [1, 2]


def test_75_when_it_is_worth_trying_again(desk: Desk) -> None:
    desk.commit({})
    busy = say("", status=503, headers={"Retry-After": "0"}, body={"error": {"message": "we are overloaded"}})
    desk.answers(say("Done.", faults=[busy] * 6))
    done = desk.exec()
    assert (done.code, closing(desk)) == (75, ("unavailable", 75))
    assert "we are overloaded" in done.err
    assert desk.pieria("resume", "--last", "--mode", "full").out == b"Done.\n"


def test_75_at_once_when_the_server_wants_a_longer_wait_than_anyone_has(desk: Desk) -> None:  # case 133
    desk.commit({})
    desk.answers(say("Done.", faults=[say("", status=429, headers={"Retry-After": "1152"})]))
    done = desk.exec()
    assert (done.code, done.wall_s < 8, "1152 s" in done.err) == (75, True, True)
    assert desk.pieria("resume", "--last", "--mode", "full").out == b"Done.\n"


def test_a_signal_stops_what_runs_within_5_s_and_leaves_a_valid_session(desk: Desk) -> None:  # cases 025, 111
    begun = []
    scripts = {}
    for number, code, deaf in (
        (signal.SIGINT, 130, "trap '' TERM INT HUP; "), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, ""),
    ):  # fmt: skip
        endless = f"{deaf}echo begun; touch up; while :; do sleep 1; done"
        calls = ask(shell(endless), shell("echo quick"), call("glob", pattern="*"))
        scripts[f"hang until {number.name}"] = [calls, say("I was stopped, I see.")]
        begun.append((number, code, desk.place(number.name)))
    desk.answers_for(scripts)
    going = [desk.begin("exec", f"hang until {number.name}", "--mode", "full", cwd=place) for number, _, place in begun]
    for (number, _, place), each in zip(begun, going, strict=True):
        desk.until(lambda: (place / "up").exists() and len(desk.log_of(place).of("tool.finished")) == 2)  # noqa: B023
        each.tell(number)
    for (_, code, place), each in zip(begun, going, strict=True):
        assert each.end(5).code == code
        log = desk.log_of(place)
        end = log.data("session.closed")[-1]
        assert (end["outcome"], end["exit_code"]) == ("interrupted", code)
        texts = list(log.results().values())
        assert len(texts) == 3
        assert any("begun" in text and "interrupted" in text for text in texts)
    assert desk.left() == []
    for _, _, place in begun:
        done = desk.pieria("resume", "--last", cwd=place)
        assert (done.code, done.out) == (0, b"I was stopped, I see.\n")
        assert [message["role"] for message in desk.log_of(place).messages()].count("tool") == 3


def test_a_second_signal_ends_the_process_at_once_and_resume_takes_up_what_it_left(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("trap '' TERM; touch up; sleep 1.5; touch done")), say("Collected."))
    going = desk.begin("exec", "hang", "--mode", "full")
    desk.until((desk.repo / "up").exists)
    going.tell(signal.SIGINT)
    desk.until(lambda: "interrupt.requested" in desk.log.types())
    going.tell(signal.SIGINT)
    assert going.end(5).code == 130
    assert desk.pieria("resume", "--last").code == 0
    assert len(desk.log.results()) == 1
    assert desk.left() == []


def test_a_signal_in_a_wait_ends_the_wait(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("Done.", faults=[say("", status=429, headers={"Retry-After": "60"})]))
    going = desk.begin("exec", "wait")
    desk.until(lambda: desk.logs() and "timer.set" in desk.log.types())
    going.tell(signal.SIGTERM)
    assert going.end(5).code == 143
    assert desk.pieria("resume", "--last").out == b"Done.\n"
