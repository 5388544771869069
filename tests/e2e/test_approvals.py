"""Approvals without a person at the terminal: a question stays open, is answered later, and is acted on once."""

from __future__ import annotations

from tests.e2e.desk import Desk, ask, call, say, shell


def questions(desk: Desk) -> list[str]:
    return [record["op"] for record in desk.log.of("approval.requested")]


def answers(desk: Desk) -> list[tuple[str, str, str]]:
    return [(each["op"], each["data"]["answer"], each["data"]["by"]) for each in desk.log.of("approval.answered")]


def two_questions(desk: Desk) -> list[str]:
    """A batch: two commands that need leave, and a read that needs none."""
    desk.commit({"a.txt": "hi\n"})
    desk.answers(
        ask(shell("echo x >> n.txt"), call("read", path="a.txt"), shell("echo y >> m.txt")), say("Done."), say("More.")
    )
    done = desk.pieria("exec", "do both")
    assert (done.code, done.out) == (3, b"")
    ids = questions(desk)
    for id, command in zip(ids, ("echo x >> n.txt", "echo y >> m.txt"), strict=True):
        assert f"approval {id}: lead wants shell (mode edits: a command with shell syntax" in done.err
        assert f"\n  | {command}\n" in done.err
    assert f"pieria resume {desk.log.id} --approve {ids[0]}" in done.err
    assert list(desk.log.results().values()) == ["1\thi"]  # the other call of the batch finished
    assert not (desk.repo / "n.txt").exists()
    return ids


def test_an_approved_call_runs_exactly_once_and_a_refused_one_never(desk: Desk) -> None:
    first, second = two_questions(desk)
    done = desk.pieria("resume", desk.log.id, "--approve", first)
    assert done.code == 3
    assert first not in done.err
    assert f"--approve {second}" in done.err
    assert (desk.repo / "n.txt").read_text() == "x\n"
    done = desk.pieria("resume", desk.log.id, "--approve", first)
    assert (done.code, f"open questions: {second}" in done.err) == (2, True)
    done = desk.pieria("resume", "--last", "--deny-id", second)
    assert (done.code, done.out) == (0, b"Done.\n")
    assert answers(desk) == [(first, "allow", "person"), (second, "deny", "person")]
    assert (desk.repo / "n.txt").read_text() == "x\n"
    assert not (desk.repo / "m.txt").exists()
    told = [message["content"] for message in desk.log.messages() if message["role"] == "tool"]
    assert told[1] == "1\thi"  # in the order asked
    assert "refused" in told[2]


def test_a_prompt_neither_answers_nor_withdraws_an_open_question(desk: Desk) -> None:
    ids = two_questions(desk)
    done = desk.pieria("exec", "--session", desk.log.id, "never mind, tell me a joke")
    assert done.code == 3
    assert all(id in done.err for id in ids)
    assert desk.pieria("resume", "--last").code == 3
    assert (questions(desk), answers(desk)) == (ids, [])  # the same questions under the same ids, none asked again
    approve = [word for id in ids for word in ("--approve", id)]
    done = desk.pieria("resume", "--last", *approve)
    assert (done.code, done.out) == (0, b"Done.\n")
    roles = [message["role"] for message in desk.log.messages()[-5:]]
    assert roles == ["assistant", "tool", "tool", "tool", "user"]  # the prompt enters at the next step
    assert desk.log.messages()[-1]["content"] == "never mind, tell me a joke"


def test_rules_and_modes_given_at_resume_rule_on_the_open_question_again(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("touch a")), ask(shell("touch b | cat")), ask(shell("touch c")), say("Done."))
    assert desk.pieria("exec", "make files").code == 3
    assert desk.pieria("resume", "--last", "--allow", "shell(git *)").code == 3  # does not cover it
    assert answers(desk) == []
    assert desk.pieria("resume", "--last", "--allow", "shell(touch *)").code == 3  # now the next one is asked
    assert desk.pieria("resume", "--last", "--mode", "full").code == 0
    assert answers(desk) == [(questions(desk)[0], "allow", "policy"), (questions(desk)[1], "allow", "policy")]
    assert all((desk.repo / name).exists() for name in "abc")
    assert len(questions(desk)) == 2


def test_a_deny_rule_given_at_resume_closes_the_open_question(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("touch a")), say("Then I leave it."))
    assert desk.pieria("exec", "make files").code == 3
    done = desk.pieria("resume", "--last", "--deny", "shell(touch *)")
    assert (done.code, done.out) == (0, b"Then I leave it.\n")
    assert answers(desk) == [(questions(desk)[0], "deny", "policy")]
    assert not (desk.repo / "a").exists()


def test_deny_rules_never_stop_the_turn_and_beat_every_allow(desk: Desk) -> None:  # case 034
    desk.commit({"keep.txt": "keep\n"})
    desk.answers(
        ask(
            shell("rm keep.txt"), shell("touch x; /bin/rm -f keep.txt"), call("write", path="keep.txt", content="no\n"),
            call("edit", path="./keep.txt", edits=[{"old": "keep", "new": "no"}]), shell("echo fine"),
        ),
        say("I can't remove it."),
    )  # fmt: skip
    deny = ("--deny", "shell(rm *)", "--deny", "edit(keep.txt)")
    done = desk.pieria("exec", "remove it", "--mode", "full", "--allow", "shell(rm *)", *deny)
    assert (done.code, done.out) == (0, b"I can't remove it.\n")
    assert (desk.repo / "keep.txt").read_text() == "keep\n"
    *refused, ran = desk.log.results().items()
    assert sorted(id for id, _ in [*refused, ran]) == [f"lead.1.{number}" for number in range(5)]
    texts = desk.log.results()
    assert all(
        "Not allowed" in texts[f"lead.1.{number}"] or "read it" in texts[f"lead.1.{number}"] for number in range(4)
    )
    assert texts["lead.1.4"] == "fine\n[exit 0]"
    assert questions(desk) == []


def test_plan_mode_refuses_every_change_and_finishes(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    edit = call("edit", path="a.txt", edits=[{"old": "hi", "new": "ho"}])
    desk.answers(ask(edit, shell("touch b"), call("read", path="a.txt")), say("The plan is."))
    done = desk.pieria("exec", "plan it", "--mode", "plan")
    assert (done.code, done.out) == (0, b"The plan is.\n")
    assert desk.git("status", "--short") == ""
    assert desk.log.results()["lead.1.2"] == "1\thi"


def test_what_was_approved_is_asked_again_when_the_file_changed_meanwhile(desk: Desk) -> None:  # case 100
    desk.commit({"a.txt": "one\ntwo\n"})
    desk.answers(ask(call("edit", path="a.txt", edits=[{"old": "two", "new": "2"}])), say("Done."))
    assert desk.pieria("exec", "change it", "--mode", "ask").code == 3
    (desk.repo / "a.txt").write_text("ONE\ntwo\n")
    done = desk.pieria("resume", "--last", "--mode", "ask", "--approve", questions(desk)[0])
    assert (desk.repo / "a.txt").read_text() in ("ONE\ntwo\n", "ONE\n2\n")
    if done.code == 3:
        assert len(questions(desk)) == 2
        desk.pieria("resume", "--last", "--mode", "ask", "--approve", questions(desk)[1])
    else:
        (result,) = desk.log.results().values()
        assert "changed" in result
    assert (desk.repo / "a.txt").read_text().startswith("ONE\n")  # the person's own change is never lost


def test_changing_what_rules_an_agent_always_asks(desk: Desk) -> None:
    desk.commit({"AGENTS.md": "Be kind.\n"})
    edit = call("edit", path="AGENTS.md", edits=[{"old": "kind", "new": "evil"}])
    desk.answers(ask(edit, call("write", path=".git/hooks/pre-commit", content="evil\n")), say("Done."))
    done = desk.exec("rewrite the rules")
    assert (done.code, len(questions(desk))) == (3, 1)
    assert ".git is closed" in desk.log.results()["lead.1.1"]
    assert not (desk.repo / ".git/hooks/pre-commit").exists()
    assert desk.pieria("resume", "--last", "--mode", "full", "--allow", "edit").code == 3
    assert desk.git("status", "--short") == ""
