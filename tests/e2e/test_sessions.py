"""Finding sessions, going on with them, and what may happen to their files in between."""

from __future__ import annotations

import json
import os
import shutil
import signal
from itertools import pairwise

from tests.e2e.desk import Desk, Log, ask, call, reseal, say, shell


def test_going_on_by_id_by_its_start_by_folder_and_by_last_is_one_and_the_same(desk: Desk) -> None:  # case 040
    desk.commit({"a.txt": "hi\n"})
    items = [{"text": "read it", "state": "doing"}]
    desk.answers(
        ask(call("read", path="a.txt"), call("todo", items=items)), *[say(f"Answer {n}.") for n in range(1, 6)]
    )
    assert desk.exec("first").out == b"Answer 1.\n"
    id = desk.log.id
    ways = (("--session", id), ("--session", id[:-2]), ("--continue",))
    for number, way in enumerate(ways, 2):
        assert desk.pieria("exec", f"prompt {number}", *way).out == f"Answer {number}.\n".encode()
    assert desk.pieria("resume", "--last").out == b"Answer 4.\n"  # nothing was left to do: it says so again
    assert len(desk.log.of("step.started")) == 5
    contents = [message["content"] for message in desk.log.messages() if message["role"] == "user"]
    said = [content for content in contents if not content.startswith("<note")]
    assert said == ["first", "prompt 2", "prompt 3", "prompt 4"]
    assert [record["epoch"] for record in desk.log.of("session.opened")] == [1, 2, 3, 4, 5]


def test_every_request_is_the_one_before_with_more_at_its_end(desk: Desk) -> None:  # case 026
    desk.commit({"a.txt": "hi\n", "b.bin": b"\0\1\2" * 400})
    calls = [
        call("read", path="a.txt"), call("read", path="nope.txt"), call("grep", pattern="h"), call("glob", pattern="*"),
        shell("seq 1 20000"), shell("exit 3"), call("write", path="new.txt", content="x\n"), call("todo", items=[]),
    ]  # fmt: skip
    desk.answers(ask(*calls), say("Done."), say("More."), say("End."))
    desk.exec("work")
    before = desk.log.requests()
    results = desk.log.results()
    for prompt in ("more", "end"):
        desk.exec(prompt, "--continue")
    requests = [request["messages"] for request in desk.log.requests()]
    for shorter, longer in pairwise(requests):
        assert longer[: len(shorter)] == shorter
    assert desk.log.requests()[:2] == before
    told = {message["tool_call_id"]: message["content"] for message in requests[-1] if message["role"] == "tool"}
    assert list(told.values()) == [results[f"lead.1.{number}"] for number in range(len(calls))]


def test_another_model_is_refused_and_another_address_is_fine(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("One."), say("Two."))
    desk.exec("one")
    done = desk.pieria("exec", "two", "--continue", "--model", "chat:other")
    assert (done.code, "chat:scripted" in done.err) == (2, True)
    desk.answers(say("One."), say("Two, from elsewhere."))
    assert desk.pieria("exec", "two", "--continue").out == b"Two, from elsewhere.\n"


def test_an_ambiguous_start_of_an_id_names_those_that_it_fits(desk: Desk) -> None:
    desk.commit({})
    desk.answers(say("One."))
    desk.exec("one")
    desk.exec("two")
    done = desk.pieria("resume", desk.logs()[0].id[:8])
    assert done.code == 2
    assert all(log.id in done.err for log in desk.logs())


def test_the_list_is_right_whatever_happens_to_its_cache(desk: Desk) -> None:  # cases 011, 014
    desk.commit({})
    desk.answers(say("Done."))
    for name in ("alpha", "beta", "gamma"):  # one after another: the list is in their order
        desk.exec(f"the {name} task")
    alpha, beta, gamma = desk.logs()
    index = desk.sessions / "index.json"

    def listed(*words: str) -> list[str]:
        return [json.loads(line)["id"] for line in desk.pieria("sessions", "--json", *words).text.splitlines()]

    newest_first = [gamma.id, beta.id, alpha.id]
    assert listed() == newest_first
    index.unlink()
    assert listed() == newest_first
    index.write_bytes(b'{"version":1,"rows":[{"id":"gar\xffbage')
    assert listed() == newest_first
    assert listed("beta") == [beta.id]
    desk.spoilt.add(beta.path.name)
    beta.path.unlink()
    gone = desk.pieria("sessions")
    assert "missing" in gone.text
    assert [done.code for done in desk.together(("resume", beta.id), ("resume", alpha.id))] == [2, 0]
    other = desk.base / "elsewhere"
    other.mkdir()
    assert desk.pieria("sessions", "--here", cwd=other).out == b""
    assert desk.pieria("exec", "x", "--continue", cwd=other).code == 2


def test_other_sessions_cost_a_start_nothing_and_a_list_little(desk: Desk) -> None:  # case 014
    desk.commit({})
    desk.answers(say("One."), say("Two."))
    assert desk.exec("one").code == 0
    whole, id = desk.log.path.read_bytes(), desk.log.id
    for number in range(400):
        other = f"20250101t0000{number % 60:02}-{number:06x}"
        (desk.sessions / f"{other}.jsonl").write_bytes(whole.replace(id.encode(), other.encode()))
    huge = desk.sessions / "20250101t000000-ffffff.jsonl"
    huge.write_bytes(whole)
    os.truncate(huge, 2_000_000_000)  # a hole: nobody reads that in time
    pipe = desk.sessions / "20250101t000000-fffffe.jsonl"
    os.mkfifo(pipe)  # whoever opens that to look waits for ever
    desk.spoilt |= {log.path.name for log in desk.logs()}
    done = desk.exec("two", "--session", id)
    assert (done.code, done.out) == (0, b"Two.\n")
    done = desk.exec("afresh")
    assert (done.code, done.wall_s < 3) == (0, True)
    listed = desk.pieria("sessions", "--json")
    assert (listed.code, len(listed.lines) >= 400, listed.wall_s < 8) == (0, True, True)
    pipe.unlink()
    huge.unlink()


def test_a_killed_holder_leaves_no_lock(desk: Desk) -> None:  # case 017
    desk.commit({})
    desk.answers(say("Done.", delay_ms=60_000))
    going = desk.begin("exec", "hang")
    for count in range(1, 7):
        desk.until(lambda: desk.logs() and len(desk.log.of("step.started")) >= count)  # noqa: B023
        going.kill()
        assert going.process.returncode == -signal.SIGKILL
        going = desk.begin("resume", "--last") if count < 6 else going
    assert [each["attempt"] for each in desk.log.data("step.started")] == [1, 2, 3, 4, 5, 6]
    assert {each["request"]["sha256"] for each in desk.log.data("step.started")} == {desk.asked(1)[0].sha256}


def test_no_operation_rewrites_what_a_log_holds(desk: Desk) -> None:  # case 023
    desk.commit({})
    desk.answers(say("One."), say("Two."))
    desk.exec("one")
    id, before = desk.log.id, desk.log.path.read_bytes()
    verbs = (("sessions",), ("log", "show", id), ("log", "verify", id), ("log", "stats", id), ("replay", id))
    assert [done.code for done in desk.together(*verbs)] == [0] * len(verbs)
    assert desk.log.path.read_bytes() == before
    for verb in (("resume", id), ("exec", "two", "--session", id), ("exec", "x", "--session", id, "--model", "m")):
        desk.pieria(*verb)
        now = desk.log.path.read_bytes()
        assert now.startswith(before)
        before = now
    inode = desk.log.path.stat().st_ino
    desk.pieria("resume", id)
    assert desk.log.path.stat().st_ino == inode


def test_a_moved_project_is_recognised_by_its_session(desk: Desk) -> None:  # case 022
    desk.commit({"a.txt": "hi\n"})
    desk.answers(ask(call("read", path="a.txt")), say("One."), ask(shell("cat a.txt")), say("Two."), say("Three."))
    desk.exec("one")
    moved = desk.base / "moved"
    desk.repo.rename(moved)
    done = desk.pieria("resume", desk.log.id, cwd=desk.home)
    assert (done.code, "gone" in done.err, "log show" in done.err) == (2, True, True)
    assert desk.pieria("log", "show", desk.log.id, cwd=desk.home).code == 0
    done = desk.exec("two", "--session", desk.log.id, cwd=moved)
    assert (done.code, done.out) == (0, b"Two.\n"), done.err
    assert desk.log.results()[f"{desk.log.of('step.finished')[2]['op']}.0"] == "hi\n[exit 0]"
    assert desk.log.of("session.opened")[-1]["data"]["moved_to"] == str(moved)
    desk.repo.symlink_to(moved)
    assert desk.pieria("exec", "three", "--continue").out == b"Three.\n"


def test_a_copied_log_is_refused_under_another_name_and_its_twin_goes_on(desk: Desk) -> None:  # case 024
    desk.commit({})
    desk.answers(say("One."), say("Two."))
    desk.exec("one")
    twin = Log(desk.sessions / "20300101t000000-abcdef.jsonl")
    shutil.copy(desk.log.path, twin.path)
    desk.spoilt.add(twin.path.name)
    done = desk.pieria("exec", "two", "--session", twin.id)
    assert (done.code, "is named" in done.err) == (6, True)
    assert desk.pieria("exec", "two", "--session", desk.logs()[0].id).out == b"Two.\n"
    assert len(twin.records) < len(desk.logs()[0].records)


def test_two_sessions_in_one_folder_keep_to_their_own_logs(desk: Desk) -> None:  # case 024
    desk.commit({})
    desk.answers(*[ask(shell(f"echo {n}; sleep 0.1")) for n in range(4)], say("Done."))
    going = [desk.begin("exec", f"session {name}", "--mode", "full") for name in "ab"]
    assert [each.end().out for each in going] == [b"Done.\n"] * 2
    for log in desk.logs():
        assert len(log.of("step.started")) == 5
        assert list(log.results().values()) == [f"{n}\n[exit 0]" for n in range(4)]
    first, second = (log.data("prompt.submitted")[0]["text"] for log in desk.logs())
    assert {first, second} == {"session a", "session b"}


def test_logs_of_other_versions_are_read_and_only_the_unreadable_stops_a_resume(desk: Desk) -> None:  # case 020
    desk.commit({})
    desk.answers(say("One."), say("Two."))
    desk.exec("one")
    id, whole = desk.log.id, desk.log.path.read_bytes()
    desk.spoilt.add(desk.log.path.name)
    end = b'"type":"turn.finished","v":1,"data":{"reason":"done"'

    def with_end(other: bytes) -> None:
        desk.log.path.write_bytes(whole)
        reseal(desk.log.path, lambda _, line: line.replace(end, other))
        assert desk.log.path.read_bytes() != whole

    for strange in (end.replace(b"turn.finished", b"turn.polished"), end.replace(b'"v":1', b'"v":9')):
        with_end(strange)
        before = desk.log.path.read_bytes()
        words = (("log", "show", id), ("exec", "two", "--session", id), ("sessions",))
        shown, done, listed = desk.together(*words)
        assert (shown.code, "session.closed" in shown.text) == (0, True)
        assert (done.code, "newer version" in done.err, "log show" in done.err) == (6, True, True)
        assert id in listed.text
        assert desk.log.path.read_bytes() == before
    with_end(b'"type":"x.note","v":3,"data":{"reason":"done"')
    assert desk.pieria("replay", id).code == 0
    with_end(end + b',"mood":"good"')
    assert desk.pieria("exec", "two", "--session", id).out == b"Two.\n"
    desk.log.path.write_bytes(whole)
    reseal(desk.log.path, lambda _, line: line.replace(b'"format":1', b'"format":9'))
    done = desk.pieria("resume", id)
    assert (done.code, "format 9" in done.err, "update" in done.err) == (6, True, True)
    desk.log.path.write_bytes(whole)
    assert desk.pieria("exec", "two", "--session", id).out == b"Two.\n"


def test_follow_shows_records_as_they_come_without_disturbing_the_writer(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("touch up; while [ ! -e go ]; do sleep 0.05; done")), say("Done."))
    writer = desk.begin("exec", "wait", "--mode", "full", "--quiet")
    desk.until((desk.repo / "up").exists)
    follower = desk.begin("log", "follow", desk.log.id, "--json")
    assert follower.process.stdout is not None
    read = [json.loads(follower.process.stdout.readline()) for _ in range(5)]
    (desk.repo / "go").touch()
    assert writer.end().out == b"Done.\n"
    while read[-1]["type"] != "session.closed":
        read.append(json.loads(follower.process.stdout.readline()))
    follower.tell(signal.SIGINT)
    assert follower.end().code == 130
    assert [line["seq"] for line in read] == list(range(len(desk.log.records)))
