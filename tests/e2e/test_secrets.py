"""Known secrets: in no log, no request, no command's environment nor the program's own; still of use in their place.

That the key of each test is nowhere in its logs and was never printed is checked at the end of every test here.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.e2e.desk import KEY, Desk, ask, call, say, shell

TOKEN = "tok-8231-abcdefgh"


def state(desk: Desk) -> bytes:
    """All bytes that the program keeps."""
    return b"".join(path.read_bytes() for path in desk.sessions.parent.rglob("*") if path.is_file())


def test_the_key_goes_to_the_model_and_nowhere_else(desk: Desk) -> None:  # cases 130, 132
    desk.commit({})
    look = "{ env; cat /proc/*/environ; } 2>/dev/null | tr '\\0' '\\n'"
    desk.answers(ask(shell(f"{look} | grep -c {KEY[:11]}; {look} | grep -c PIERIA_JOB=; env")), say("Done."))
    done = desk.exec("look for the key", "--json", "--progress")
    assert done.code == 0
    assert desk.model[0].headers[0]["authorization"] == f"Bearer {KEY}"
    (text,) = desk.log.results().values()
    in_all_processes, marks, _ = text.split("\n", 2)
    assert in_all_processes == "0"  # not even in the program's own, as it was started
    assert int(marks) > 0
    assert "PIERIA_API_KEY" not in text
    assert KEY.encode() not in done.out
    assert KEY.encode() not in state(desk)
    assert KEY not in json.dumps(desk.log.requests())


def test_the_programs_own_environment_is_empty_of_keys_once_a_command_runs(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("touch up; while [ ! -e go ]; do sleep 0.05; done")), say("Done."))
    going = desk.begin("exec", "wait", "--mode", "full", environ={"GITHUB_TOKEN": TOKEN})
    desk.until((desk.repo / "up").exists)
    seen = Path(f"/proc/{going.pid}/environ").read_bytes()
    arguments = Path(f"/proc/{going.pid}/cmdline").read_bytes()
    (desk.repo / "go").touch()
    assert going.end().code == 0
    assert KEY.encode() not in seen + arguments
    assert TOKEN.encode() not in seen


def test_what_a_command_or_file_shows_of_a_secret_is_masked_in_every_spelling(desk: Desk) -> None:
    desk.commit({"keys.txt": f"token = {TOKEN}\n"})
    coded = base64.b64encode(TOKEN.encode()).decode()
    desk.answers(
        ask(call("read", path="keys.txt"), shell("cat keys.txt; base64 keys.txt | head -c 0; cat keys.txt | cut -c9-"),
            call("grep", pattern="token"), shell(f"echo {coded}")),
        say(f"The token is {TOKEN}."),
    )  # fmt: skip
    done = desk.exec("show it", environ={"SERVICE_TOKEN": TOKEN})
    assert done.code == 0
    assert TOKEN.encode() not in done.out + done.err.encode()
    assert TOKEN.encode() not in state(desk)
    assert coded.encode() not in state(desk).replace(b"SERVICE_TOKEN:base64", b"")
    texts = list(desk.log.results().values())
    assert all("<<secret:SERVICE_TOKEN" in text for text in texts), texts
    assert done.text == "The token is <<secret:SERVICE_TOKEN>>.\n"


def test_a_marker_is_the_secret_where_the_world_needs_it_and_masked_when_it_comes_back(desk: Desk) -> None:
    desk.commit({"conf.ini": f"[a]\npassword = {TOKEN}\nuser = me\n"})
    mark = "<<secret:SERVICE_TOKEN>>"
    desk.answers(
        ask(shell(f"printf %s '{mark}' | wc -c; printf %s '{mark}' > out.txt; echo {mark} {mark}")),
        ask(call("write", path="new.env", content=f"TOKEN={mark}\n")),
        ask(call("read", path="conf.ini"), call("edit", path="conf.ini", edits=[{"old": mark, "new": f"{mark}!"}])),
        ask(call("write", path="other.txt", content="<<secret:NOBODY_KNOWS>>\n")),
        say(f"Wrote {mark}."),
    )
    done = desk.exec("use it", environ={"SERVICE_TOKEN": TOKEN})
    assert (done.code, done.text) == (0, f"Wrote {mark}.\n")
    assert (desk.repo / "out.txt").read_text() == TOKEN
    assert (desk.repo / "new.env").read_text() == f"TOKEN={TOKEN}\n"
    assert (desk.repo / "conf.ini").read_text() == f"[a]\npassword = {TOKEN}!\nuser = me\n"
    assert (desk.repo / "other.txt").read_text() == "<<secret:NOBODY_KNOWS>>\n"
    results = list(desk.log.results().values())
    assert results[0] == f"{len(TOKEN)}\n{mark} {mark}\n[exit 0]"
    assert TOKEN.encode() not in state(desk)
    assert TOKEN not in json.dumps(desk.log.requests())


def test_an_approved_write_of_a_secret_happens_only_where_its_value_is_known(desk: Desk) -> None:
    desk.commit({})
    mark = "<<secret:SERVICE_TOKEN>>"
    desk.answers(ask(call("write", path="a.env", content=f"T={mark}\n")), say("Done."))
    environ = {"SERVICE_TOKEN": TOKEN}
    assert desk.pieria("exec", "write it", "--mode", "ask", environ=environ).code == 3
    asked = desk.log.of("approval.requested")[0]["op"]
    done = desk.pieria("resume", "--last", "--mode", "ask", "--approve", asked)  # the value is not here any more
    assert not (desk.repo / "a.env").exists()
    assert TOKEN.encode() not in state(desk)
    while done.code == 3:  # what was approved is no longer what would be done: asked again, each time
        asked = desk.log.of("approval.requested")[-1]["op"]
        done = desk.pieria("resume", "--last", "--mode", "ask", "--approve", asked, environ=environ)
    assert done.out == b"Done.\n"
    assert (desk.repo / "a.env").read_text() == f"T={TOKEN}\n"
    assert 2 <= len(desk.log.of("approval.requested")) <= 3


def test_a_dotenv_is_masked_in_a_trusted_folder_and_never_loaded(desk: Desk) -> None:  # case 131
    desk.commit({})
    (desk.repo / ".env").write_text(
        "DB_PASSWORD='hunter2hunter2'\nDEBUG=1\nPYTHONPATH=.\nPIERIA_MODE=plan\nHTTPS_PROXY=http://x\n"
    )
    (desk.repo / "sitecustomize.py").write_text("raise SystemExit('loaded')\n")
    (desk.repo / "msgspec.py").write_text("raise SystemExit('loaded')\n")
    desk.answers(ask(shell("cat .env; echo DEBUG=[$DEBUG]")), say("Done."))
    done = desk.exec("look", "--trust")
    assert done.code == 0, done.err
    (text,) = desk.log.results().values()
    assert "hunter2hunter2" not in text
    assert "<<secret:DB_PASSWORD>>" in text
    assert "DEBUG=[]" in text
    assert b"hunter2hunter2" not in state(desk)
    assert desk.log.data("settings.applied")[0]["mode"] == "full"


def test_a_provider_that_repeats_the_key_gives_nothing_away(desk: Desk) -> None:  # case 132
    desk.commit({})
    desk.answers(say("", status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    done = desk.exec()
    assert done.code == 1
    assert "Incorrect API key" in done.err
    assert KEY not in done.err


def test_files_of_the_state_are_for_the_person_alone_whatever_the_umask(desk: Desk) -> None:  # case 132
    desk.commit({})
    desk.answers(ask(shell("umask; touch made")), say("Done."))
    assert desk.exec("work", before=("bash", "-c", 'umask 000; exec "$@"', "bash")).code == 0
    assert desk.pieria("sessions", before=("bash", "-c", 'umask 000; exec "$@"', "bash")).code == 0
    for path in (desk.sessions.parent, *desk.sessions.parent.rglob("*")):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path
    assert desk.sessions.parent.stat().st_mode & 0o077 == 0
    assert (desk.repo / "made").stat().st_mode & 0o777 == 0o666  # the command keeps the person's own
