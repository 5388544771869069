"""What agents may do is the person's word: kept over restarts, shown whole, and not to be talked around."""

from __future__ import annotations

from tests.e2e.desk import Desk, ask, call, say, shell

KEY = "sk-own-key-0123456789"
TOKEN = "uniq-token-0123456789"


def test_going_on_keeps_the_mode_and_the_rules_of_the_session(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    desk.answers(
        ask(call("write", path="x.txt", content="x")), say("One."), ask(call("write", path="y.txt", content="y"))
    )
    done = desk.exec("write", "--mode", "ask", "--deny", "edit(docs/**)", "--allow", "shell(true)")
    assert done.code == 3
    assert desk.pieria("resume", "--last").code == 3
    first, *_, last = desk.log.data("settings.applied")
    assert (last["mode"], last["deny"], last["allow"]) == ("ask", ["edit(docs/**)"], ["shell(true)"])
    assert first["mode"] == "ask"
    assert not (desk.repo / "x.txt").exists()
    assert desk.pieria("resume", "--last", "--mode", "edits").code == 0
    assert (desk.repo / "x.txt").read_text() == "x"


def test_a_persons_no_is_heard_before_this_runs_rules(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    desk.answers(ask(call("write", path="x.txt", content="x"), call("write", path="y.txt", content="y")), say("Done."))
    assert desk.exec("write", "--mode", "ask").code == 3
    ids = [record["op"] for record in desk.log.of("approval.requested")]
    done = desk.pieria("resume", "--last", "--deny-id", ids[0], "--mode", "edits")
    assert done.code == 0
    assert not (desk.repo / "x.txt").exists()
    assert (desk.repo / "y.txt").read_text() == "y"


def test_a_rejected_command_line_records_nothing(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    desk.answers(ask(call("write", path="x.txt", content="x")), say("Done."))
    assert desk.exec("write", "--mode", "ask").code == 3
    question = desk.log.of("approval.requested")[0]["op"]
    before = len(desk.log.records)
    for words in (["--approve", question, "--deny-id", "lead.99"], ["--approve", question, "--deny-id", question]):
        assert desk.pieria("resume", "--last", *words).code == 2
    assert len(desk.log.records) == before
    assert desk.pieria("resume", "--last").code == 3


def test_a_question_shows_all_of_what_would_be_done(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    hidden = "echo tests" + " ." * 400 + "; touch HIDDEN"
    desk.answers(
        ask(
            shell("echo hi #\ntouch SECOND\x1b[2K\u202e"), shell(hidden),
            call("write", path="new.txt", content="all of it\n"),
            call("read", path="/tmp/x\x1b[2K\napproval lead.1: harmless"),
        ),
        say("Done."),
    )  # fmt: skip
    done = desk.exec("do it", "--mode", "ask")
    assert done.code == 3
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err
    assert "\n  | echo hi #\n  | touch SECOND\\x1b[2K\\u202e\n" in done.err
    assert "touch HIDDEN" in done.err
    assert "\n  | +all of it\n" in done.err
    assert "\napproval lead.1: harmless" not in done.err


def test_our_own_key_can_be_used_by_no_call_and_another_secret_is_asked_about(desk: Desk) -> None:
    desk.commit({"AGENTS.md": f"the token is {TOKEN}\n"})
    desk.answers(
        ask(
            call("write", path="leak.txt", content="<<secret:PIERIA_API_KEY>>"),
            shell("echo <<secret:MY_TOKEN>>"),
            call("todo", items=[{"text": "use <<secret:MY_TOKEN>>", "state": "open"}]),
        ),
        say("Done."),
    )
    secrets = {"PIERIA_API_KEY": KEY, "MY_TOKEN": TOKEN}
    done = desk.exec(f"deploy with {TOKEN}", "--mode", "edits", "--allow", "shell(echo *)", environ=secrets)
    assert done.code == 3
    assert "uses a secret: MY_TOKEN" in done.err
    assert not (desk.repo / "leak.txt").exists()
    question = desk.log.of("approval.requested")[0]["op"]
    done = desk.pieria("resume", "--last", "--approve", question, environ=secrets)
    told = desk.log.results()
    assert any("<<secret:MY_TOKEN>>" in result for result in told.values())
    log = desk.log.path.read_bytes()
    assert KEY.encode() not in log
    assert TOKEN.encode() not in log


def test_no_spelling_of_a_marker_gets_a_secret_out_unasked(desk: Desk) -> None:
    desk.commit({})
    escaped = '{"command": "touch \'K-\\u003c\\u003csecret:%s\\u003e\\u003e\'"}'
    half = '{"command": "touch \'K-<\\u003csecret:%s:base64>>\'"}'
    desk.answers(
        ask(
            *[
                call("shell", text % name)
                for text in (escaped, half)
                for name in ("PIERIA_API_KEY", "LLM_TOKEN", "MY_TOKEN")
            ]
        ),
        say("Done."),
    )
    secrets = {"PIERIA_API_KEY": KEY, "LLM_TOKEN": KEY, "MY_TOKEN": TOKEN}
    assert desk.pieria("exec", "go", "--allow", "shell(touch *)", environ=secrets).code == 3
    assert [path.name for path in desk.repo.iterdir() if path.name.startswith("K-")] == []
    asked = desk.log.data("approval.requested")
    assert [data["why"] for data in asked] == ["mode edits: uses a secret: MY_TOKEN"] * 2
    assert desk.pieria("resume", "--last", "--mode", "full", environ=secrets).code == 0
    left = [path.name for path in desk.repo.iterdir()]
    assert not any(KEY in name for name in left)
    assert f"K-{TOKEN}" in left  # what was asked about and allowed is done


def test_no_part_of_a_secret_comes_back_in_an_error_a_note_or_a_path(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n", "near.txt": "w" * 101 + "ZZZ\n"})
    marker = "<<secret:MY_TOKEN>>"
    desk.answers(
        ask(
            call("read", path=f"{marker}/../a.txt"),
            call("glob", pattern="*", path=f"{marker}/.."),
            call("edit", path=f"{marker}/../a.txt", edits=[{"old": "nothere", "new": "x"}]),
            call("edit", path="near.txt", edits=[{"old": "w" * 101 + marker, "new": "x"}]),
            call("todo", items=[{"text": "x" * 461 + marker, "state": "doing"}]),
            call("read", path="x" * 85 + marker + "y" * 300),
            call("grep", pattern=f"[{marker}]"),
        ),
        say("Done."),
    )
    desk.pieria("exec", "go", environ={"MY_TOKEN": TOKEN})
    log = desk.log.path.read_text()
    assert len(desk.log.of("call.examined")) == 7
    assert TOKEN[:6] not in log


def test_streamed_text_shows_no_secret_however_it_is_cut(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("y" * 2040 + f"{KEY} {TOKEN}" + "z" * 3000, chunk_chars=4))
    secrets = {"PIERIA_API_KEY": KEY, "MY_TOKEN": TOKEN}
    done = desk.pieria("exec", "go", "--json", "--progress", environ=secrets)
    assert done.code == 0
    told = "".join(line["text"] for line in done.lines if line["type"] == "x.progress")
    kept = "".join(line["data"]["text"] for line in done.lines if line["type"] == "step.partial")
    assert told.startswith("y" * 2040 + "<<secret:PIERIA_API_KEY>> <<secret:MY_TOKEN>>z")
    assert told.endswith("z" * 3000)
    assert KEY not in kept
    assert TOKEN not in kept


def test_a_secret_of_a_trusted_folder_does_not_hide_that_of_the_environment(desk: Desk) -> None:
    desk.commit({".pieria/config.toml": 'mode = "edits"\n', "real.txt": f"it is {TOKEN}\n"})
    (desk.repo / ".env").write_text("MY_TOKEN=development-dummy-1\n")
    desk.answers(ask(call("read", path="real.txt")), say("Done."))
    assert desk.pieria("exec", "go", "--trust", environ={"MY_TOKEN": TOKEN}).code == 0
    assert "it is <<secret:MY_TOKEN>>" in next(iter(desk.log.results().values()))
    assert TOKEN.encode() not in desk.log.path.read_bytes()


def test_a_long_command_is_shown_to_its_last_line(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("\n".join(f"echo {n}" for n in range(400)) + "\ntouch EVIL")), say("Done."))
    done = desk.pieria("exec", "go")
    assert done.code == 3
    assert "\n  | touch EVIL\n" in done.err


def test_an_answer_with_far_too_many_calls_runs_none_of_them(desk: Desk) -> None:
    desk.commit({"a.txt": "hi\n"})
    desk.in_order(ask(*[call("read", path="a.txt")] * 101), say("Fewer then."))
    assert desk.exec().code == 0
    assert [data["kind"] for data in desk.log.data("nudge.given")] == ["too_many_calls"]
    assert desk.log.of("tool.started") == []


def test_only_so_many_commands_run_side_by_side(desk: Desk) -> None:
    desk.commit({})
    counted = "mkdir -p now; touch now/$$; ls now | wc -l; sleep 0.3; rm now/$$"
    desk.answers(ask(*[shell(counted)] * 20), say("Done."))
    assert desk.exec("go", "--mode", "full").code == 0
    most = max(int(result.split()[0]) for result in desk.log.results().values())
    assert 2 <= most <= 8


def test_paths_and_commands_start_in_the_folder_that_was_named(desk: Desk) -> None:
    desk.commit({"sub/deep/a.txt": "hi\n", "top.txt": "top\n"})
    desk.answers(
        ask(call("write", path="made.txt", content="m"), shell("pwd"), call("read", path="../../top.txt")), say("Done.")
    )
    assert desk.exec("go", "--allow", "shell(pwd)", "--cwd", str(desk.repo / "sub/deep")).code == 0
    assert (desk.repo / "sub/deep/made.txt").exists()
    assert sorted(desk.log.results().values())[0:2] == [f"{desk.repo}/sub/deep\n[exit 0]", "1\ttop"]
