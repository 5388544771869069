"""Replay: every request again from the log alone, byte for byte, anywhere, for ever; red at the first difference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.desk import Answer, Desk, Log, ask, call, reseal, say, shell

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.golden"))


def worked(desk: Desk, *faults: Answer) -> None:
    """A session with everything a request can hold: long texts, odd bytes, notes, errors, a restart."""
    desk.commit({"a.txt": "hi\n", "AGENTS.md": "Be kind – 好.\n"})
    edit = call("edit", path="a.txt", edits=[{"old": "hi", "new": "ho"}])
    desk.answers(
        ask(
            shell("seq 1 3000"), edit, call("read", "{broken"), shell(r"printf 'a\377\n'"),
            text="I look.", reasoning="Hm.",
        ),
        say("One.", faults=faults),
        say("Two."),
    )  # fmt: skip
    assert desk.exec("do it now, bitte – 🎉").code == 0
    assert desk.pieria("exec", "and again", "--continue").code == 0


def test_replay_is_the_same_under_any_hash_seed_locale_zone_and_folder(desk: Desk) -> None:
    worked(desk, say("Half of", cut_after_bytes=300))
    places = [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LANG": "C"},
        {"PYTHONHASHSEED": "77", "TZ": "America/St_Johns", "LC_ALL": "de_DE.ISO-8859-1"},
        {"PYTHONHASHSEED": "0", "PIERIA_MODEL": None, "PIERIA_BASE_URL": None, "PIERIA_API_KEY": None},
    ]
    going = [desk.begin("replay", desk.log.id, "--json", environ=place, cwd=desk.home) for place in places]
    found = [each.end() for each in going]
    assert [done.code for done in found] == [0, 0, 0]
    assert len({done.out for done in found}) == 1
    told = json.loads(found[0].out)
    assert (told["same"], told["requests"], told["records"]) == (True, 4, len(desk.log.records))
    shutil.rmtree(desk.repo)  # it needs nothing but the log
    desk.repo.mkdir()
    assert desk.pieria("replay", desk.log.id, "--json").out == found[0].out
    assert desk.pieria("replay", str(desk.log.path), "--to", "9").code == 0


def test_one_byte_changed_with_the_chain_sealed_anew_ends_with_6(desk: Desk) -> None:
    worked(desk)
    desk.spoilt.add(desk.log.path.name)
    whole = desk.log.path.read_bytes()
    forged = [
        (b"do it now", b"do it NOW", b"prompt.submitted"),
        (b"I look.", b"I Look.", b"step.finished"),
        (b'"text":"1\\n2\\n3', b'"text":"1\\n2\\n4', b"blob"),
        (b"Be kind", b"Be king", b"project.observed"),
        (b"Edited a.txt", b"Edited b.txt", b"tool.finished"),
    ]
    for number, (one, other, kind) in enumerate(forged):
        copy = desk.base / f"forged{number}" / desk.log.path.name
        copy.parent.mkdir()
        copy.write_bytes(whole)
        reseal(copy, lambda _, line: line.replace(one, other, 1) if b'"type":"%s"' % kind in line else line)  # noqa: B023
        assert len(copy.read_bytes()) == len(whole)
        assert copy.read_bytes() != whole
    paths = [str(desk.base / f"forged{number}" / desk.log.path.name) for number in range(len(forged))]
    for done in desk.together(*[("replay", path) for path in paths]):
        assert (done.code, done.out, "hint:" in done.err) == (6, b"", True)
    assert desk.pieria("replay", str(desk.log.path)).code == 0


def test_replay_names_the_record_and_the_byte_where_it_differs(desk: Desk) -> None:
    worked(desk)
    desk.spoilt.add(desk.log.path.name)
    reseal(desk.log.path, lambda _, line: line.replace(b"do it now", b"do it NOW") if b'"person"' in line else line)
    done = desk.pieria("replay", desk.log.id, "--json")
    found = done.lines[0]["difference"]
    assert (found["seq"], found["agent"]) == (desk.log.of("step.started")[0]["seq"], "lead")
    words = desk.pieria("replay", desk.log.id).err
    assert "do it now" in words
    assert "do it NOW" in words


def test_a_golden_file_replays_without_the_log_and_notices_any_change(desk: Desk) -> None:
    worked(desk)
    golden = desk.base / "golden"
    assert desk.pieria("replay", desk.log.id, "--write-golden", str(golden)).code == 0
    again = desk.base / "again"
    assert desk.pieria("replay", desk.log.id, "--write-golden", str(again), environ={"PYTHONHASHSEED": "3"}).code == 0
    assert golden.read_bytes() == again.read_bytes()
    raw = golden.read_bytes()
    assert b'"prev":' not in raw
    assert b'"hash":' not in raw
    bodies = [json.loads(line)["request"]["body"] for line in raw.splitlines() if b'"request":{"seq"' in line]
    assert [json.loads(body) for body in bodies] == desk.log.requests()
    desk.spoilt.add(desk.log.path.name)
    desk.log.path.unlink()
    assert desk.pieria("replay", "--golden", str(golden), cwd=desk.home).code == 0
    changed = [
        raw.replace(b"do it now", b"do it NOW", 1), raw.replace(b"I look.", b"I Look.", 1),
        raw.replace(b'"attempt":1', b'"attempt":2', 1), raw.replace(b'{"event":', b'{"evnt:', 1),
        raw[: len(raw) // 2], b"", b"hello",
    ]  # fmt: skip
    files = [desk.base / f"changed{number}" for number in range(len(changed))]
    for file, content in zip(files, changed, strict=True):
        file.write_bytes(content)
    ended = desk.together(*[("replay", "--golden", str(file)) for file in files])
    assert [done.code for done in ended] == [6, 6, 6, 6, 6, 2, 2]
    assert all("hint:" in done.err for done in ended)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_what_released_versions_recorded_still_gives_the_same_requests(desk: Desk, golden: Path) -> None:
    """Case 020: a file for each version that ever wrote logs, and the log that it was made from."""
    done = desk.pieria("replay", "--golden", str(golden), "--json")
    assert done.code == 0, done.err
    assert done.lines[0]["requests"] > 0
    (log,) = [Log(path) for path in golden.with_suffix("").glob("*.jsonl")]
    assert desk.pieria("log", "verify", str(log.path)).code == 0
    again = desk.base / "again"
    assert desk.pieria("replay", str(log.path), "--write-golden", str(again)).code == 0
    assert again.read_bytes() == golden.read_bytes()


def test_there_is_a_golden_file_of_this_version(desk: Desk) -> None:
    version = desk.pieria("--version").text.split()[1]
    assert f"{version}.golden" in [path.name for path in GOLDEN]
