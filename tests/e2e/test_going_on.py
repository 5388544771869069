"""Killed at any moment, a session goes on: what is finished stays so, nothing runs twice, unknown is called that."""

from __future__ import annotations

import signal

from tests.e2e.desk import Desk, ask, call, say, shell


def test_a_kill_in_the_middle_of_a_batch_repeats_nothing(desk: Desk) -> None:  # cases 025, 029
    desk.commit({"a.txt": "one\n"})
    desk.answers(
        ask(
            shell("echo x >> n.txt"),
            call("edit", path="a.txt", edits=[{"old": "one", "new": "two"}]),
            shell("echo y >> m.txt; touch up; sleep 1; echo slept"),
            call("read", path="a.txt"),
        ),
        say("Done."),
        say("Hello."),
    )
    going = desk.begin("exec", "work", "--mode", "full")
    desk.until((desk.repo / "up").exists)
    going.kill()
    done = desk.pieria("resume", "--last", "--mode", "full")
    assert (done.code, done.out) == (0, b"Done.\n")
    assert [(desk.repo / name).read_text() for name in ("n.txt", "m.txt", "a.txt")] == ["x\n", "y\n", "two\n"]
    results = desk.log.results()
    assert len(results) == 4
    assert results["lead.1.2"] == "slept\n[exit 0, collected after a restart]"
    assert desk.log.types().count("tool.started") == 4
    assert desk.pieria("exec", "hello", "--continue").out == b"Hello.\n"
    roles = [message["role"] for message in desk.log.messages()]
    assert roles.count("tool") == 4
    assert [record["data"].get("unclean_ends", 0) for record in desk.log.of("session.opened")] == [0, 1, 1]


def test_a_command_that_ended_while_nobody_was_there_is_collected(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("touch up; while [ ! -e go ]; do sleep 0.05; done; echo over; exit 5")), say("Done."))
    going = desk.begin("exec", "work", "--mode", "full")
    desk.until((desk.repo / "up").exists)
    going.kill()
    (desk.repo / "go").touch()
    assert desk.left() == []
    assert desk.pieria("resume", "--last").code == 0
    assert desk.log.results()["lead.1.0"] == "over\n[exit 5, collected after a restart]"


def test_a_command_whose_end_nobody_saw_is_called_unknown_and_not_run_again(desk: Desk) -> None:  # case 029
    desk.commit({})
    desk.answers(ask(shell("echo x >> n.txt; touch up; sleep 300")), say("I will look."))
    going = desk.begin("exec", "work", "--mode", "full")
    desk.until((desk.repo / "up").exists)
    going.kill()
    desk.kill_all()  # the command, its supervisor and the watch
    assert desk.left() == []
    done = desk.pieria("resume", "--last", "--mode", "full")
    assert (done.code, done.out) == (0, b"I will look.\n")
    assert "outcome unknown" in desk.log.results()["lead.1.0"]
    assert desk.log.data("tool.interrupted")[0]["reason"] == "unknown"
    assert (desk.repo / "n.txt").read_text() == "x\n"


def test_a_kill_in_a_model_call_sends_the_same_bytes_once_more(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("All of it.", faults=[say("Half of it is here", stall_after_bytes=350)]))
    going = desk.begin("exec", "think")
    desk.asked(1)
    going.kill()
    done = desk.pieria("resume", "--last")
    assert (done.code, done.out) == (0, b"All of it.\n")
    first, second = desk.asked(2)
    assert first.sha256 == second.sha256
    assert [data["reason"] for data in desk.log.data("step.lost")] == ["crash"]


def test_a_kill_right_after_any_record_loses_no_acknowledged_work(desk: Desk) -> None:
    desk.answers(ask(shell("echo x >> n.txt"), shell("echo y >> n.txt")), ask(shell("echo z >> n.txt")), say("Done."))
    for after in ("prompt.submitted", "step.started", "step.finished", "tool.started", "tool.finished"):
        place = desk.place(after)
        going = desk.begin("exec", "work", "--mode", "full", "--json", cwd=place)
        assert going.process.stdout is not None
        for line in going.process.stdout:
            if f'"type":"{after}"'.encode() in line:
                break
        going.kill()
        done = desk.pieria("resume", "--last", "--mode", "full", cwd=place)
        assert (done.code, done.out) == (0, b"Done.\n"), (after, done.err)
        assert sorted((place / "n.txt").read_text().split()) == ["x", "y", "z"]
        assert len(desk.log_of(place).results()) == 3


def test_killed_again_and_again_it_still_arrives(desk: Desk) -> None:
    desk.commit({})
    steps = [ask(shell(f"echo {n} >> n.txt; touch up{n}; sleep 0.2")) for n in range(6)]
    desk.answers(*steps, say("Done."))
    going = desk.begin("exec", "work", "--mode", "full")
    for n in range(6):
        desk.until((desk.repo / f"up{n}").exists)
        going.kill()
        going = desk.begin("resume", "--last", "--mode", "full")
    done = going.end()
    assert (done.code, done.out) == (0, b"Done.\n")
    assert (desk.repo / "n.txt").read_text() == "".join(f"{n}\n" for n in range(6))
    assert [data["request"]["sha256"] for data in desk.log.data("step.started")] == [
        each.sha256 for each in desk.asked(7)
    ]


def test_files_that_changed_meanwhile_are_told_of(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n", "b.txt": "hi\n", "c.txt": "hi\n"})
    desk.answers(ask(*[call("read", path=f"{name}.txt") for name in "abc"]), say("Read."), say("I see."))
    desk.exec("read")
    (desk.repo / "a.txt").write_text("other\n")
    (desk.repo / "b.txt").unlink()
    assert desk.exec("look", "--continue").out == b"I see.\n"
    told = str(desk.log.messages()[-2:])
    assert "a.txt (changed)" in told
    assert "b.txt (gone)" in told
    assert "c.txt" not in told


def test_open_questions_settings_and_notes_survive_a_kill(desk: Desk) -> None:  # case 040
    desk.commit({})
    items = [{"text": "one", "state": "done"}, {"text": "two", "state": "doing"}]
    desk.answers(ask(call("todo", items=items), shell("touch a"), shell("sleep 300", timeout_s=300)), say("Done."))
    going = desk.begin("exec", "work", "--allow", "shell(sleep *)", "--max-steps", "9")
    desk.until(lambda: desk.logs() and {"approval.requested", "tool.spawned"} <= set(desk.log.types()))
    going.kill()
    (asked,) = [record["op"] for record in desk.log.of("approval.requested")]
    listed = desk.pieria("sessions").text
    assert "unclean" in listed
    resumed = desk.begin("resume", "--last", "--approve", asked, "--allow", "shell(sleep *)")
    desk.until((desk.repo / "a").exists)
    resumed.tell(signal.SIGINT)
    assert resumed.end(6).code == 130
    assert [record["op"] for record in desk.log.of("approval.requested")] == [asked]
    assert [data["answer"] for data in desk.log.data("approval.answered")] == ["allow"]
    assert desk.left() == []
