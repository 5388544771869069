"""Damaged logs: what is sound is shown, what is lost is named, nothing is rewritten, nothing ends in a traceback."""

from __future__ import annotations

import hashlib
import json

from tests.e2e.desk import UNPRIVILEGED, Desk, ask, call, say, shell


def worked(desk: Desk) -> bytes:
    """A session of 21 records, whose log may now be spoilt."""
    desk.commit({"a.txt": "hi\n"})
    desk.answers(ask(shell("echo x >> n.txt"), call("read", path="a.txt")), say("One."), say("Two."), say("Three."))
    assert desk.exec("one").code == 0
    desk.spoilt.add(desk.log.path.name)
    return desk.log.path.read_bytes()


def nul_run(lines: list[bytes]) -> list[bytes]:
    return [*lines[:6], b"\0" * 60, *lines[7:]]


def cut_out(lines: list[bytes]) -> list[bytes]:
    return [*lines[:6], lines[6][:40] + lines[6][70:], *lines[7:]]


def left_out(lines: list[bytes]) -> list[bytes]:
    return [*lines[:6], *lines[7:]]


def bit_flipped(lines: list[bytes]) -> list[bytes]:
    line = bytearray(lines[6])
    line[100] ^= 1
    return [*lines[:6], bytes(line), *lines[7:]]


def fused(lines: list[bytes]) -> list[bytes]:
    return [*lines[:6], lines[6] + lines[7], *lines[8:]]


def twice(lines: list[bytes]) -> list[bytes]:
    return [*lines[:7], *lines[6:]]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:6], lines[7], lines[6], *lines[8:]]


HARMS = [(nul_run, 1), (cut_out, 1), (left_out, 1), (bit_flipped, 1), (fused, 0), (twice, 0), (swapped, None)]
"""Ways to harm a log, and how many records each costs (None: it depends on what stands there)."""


def test_damage_in_the_middle_hides_nothing_that_is_sound(desk: Desk) -> None:
    """Cases 002, 004, 010."""
    lines = worked(desk).split(b"\n")
    id = desk.log.id
    harmed, going = [], []
    for number, (harm, _) in enumerate(HARMS):
        path = desk.base / f"state{number}" / "pieria" / "sessions" / f"{id}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\n".join(harm(lines)))
        state = {"XDG_STATE_HOME": str(desk.base / f"state{number}")}
        harmed.append((path, path.read_bytes()))
        going.append(desk.begin("log", "show", id, "--json", environ=state))
        going.append(desk.begin("exec", "two", "--session", id, environ=state))
    for number, (_, lost) in enumerate(HARMS):
        shown, asked = (each.end() for each in going[2 * number : 2 * number + 2])
        seqs = [line["seq"] for line in shown.lines]
        assert (shown.code, "gap: " in shown.err) == (6, True)
        assert seqs == sorted(set(seqs))
        assert lost is None or len(seqs) == len(lines) - 1 - lost
        assert {"session.created", "session.closed", "step.finished"} <= {line["type"] for line in shown.lines}
        assert (asked.code, "hint:" in asked.err) == (6, True), asked
    assert all(path.read_bytes() == before for path, before in harmed)  # damaged bytes stay for inspection


def test_a_damaged_session_is_named_by_every_verb_and_concerns_no_other(desk: Desk) -> None:  # case 002
    harmed = b"\n".join(nul_run(worked(desk).split(b"\n")))
    desk.log.path.write_bytes(harmed)
    id = desk.log.id
    for done in desk.together(("log", "verify", id), ("replay", id), ("resume", id)):
        assert (done.code, "hint:" in done.err) == (6, True), done
    assert id in desk.pieria("sessions").text
    assert desk.log.path.read_bytes() == harmed
    assert desk.exec("afresh").code == 0


def test_a_torn_tail_is_set_aside_once_with_its_size_and_place(desk: Desk) -> None:  # case 001
    whole = worked(desk)
    id, start = desk.log.id, whole.rstrip(b"\n").rfind(b"\n") + 1
    last = len(whole) - start
    for cut in (1, last // 2, last - 1):
        desk.log.path.write_bytes(whole[:-cut])
        if cut == 1:
            noted = desk.pieria("log", "verify", id)
            assert (noted.code, "torn tail" in noted.text) == (0, True)
        done = desk.pieria("resume", id)
        assert (done.code, done.out, done.err.count("were set aside")) == (0, b"One.\n", 1)
        copy = done.err.split("set aside in ")[1].splitlines()[0]
        with open(copy, "rb") as file:
            assert file.read() == whole[start:-cut]
        torn = desk.log.of("session.opened")[-1]["data"]["torn"]
        assert torn == {
            "bytes": last - cut, "sha256": hashlib.sha256(whole[start:-cut]).hexdigest(), "copy": copy,
        }  # fmt: skip
        assert "set aside" not in desk.pieria("resume", id).err
        desk.log.check()
        for copied in desk.sessions.glob("*.torn-*"):
            copied.unlink()


def test_a_tail_of_nuls_or_glued_bytes_is_no_corruption(desk: Desk) -> None:  # cases 001, 004
    whole = worked(desk)
    for tail in (b"\0" * 4096, b'{"seq":99', b"\xff\xfe\n\n", b"}{\n", whole.split(b"\n")[-2] + b"\n"):
        desk.log.path.write_bytes(whole + tail)
        done = desk.pieria("resume", desk.log.id)
        assert (done.code, done.out, "set aside" in done.err) == (0, b"One.\n", True), tail
        assert desk.log.path.read_bytes().startswith(whole)
        desk.log.check()


def test_a_file_that_is_no_log_is_called_that(desk: Desk) -> None:
    desk.sessions.mkdir(parents=True)
    contents = (b"", b"\0" * 5000, b"hello\n", b"{}\n", b"\xff" * 300, b'{"seq":0}\n' * 3)
    paths = [desk.sessions / f"2026010{number}t000000-aaaaaa.jsonl" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
        desk.spoilt.add(path.name)
    commands = [("resume", path.stem) if n % 2 else ("log", "verify", str(path)) for n, path in enumerate(paths)]
    for words, done in zip(commands, desk.together(*commands), strict=True):
        assert (done.code, "hint:" in done.err) == (6, True), (words, done)
    for done in desk.together(*[("replay", path.stem) for path in paths[:2]]):
        assert done.code == 6
    assert desk.pieria("log", "show", paths[2].stem).code in (0, 1, 6)
    assert desk.pieria("sessions").code == 0
    assert [path.read_bytes() for path in paths] == list(contents)


def test_a_log_without_permission_is_read_or_named_and_never_touched(desk: Desk) -> None:
    whole = worked(desk)
    id = desk.log.id
    desk.log.path.chmod(0o400)
    done = desk.pieria("exec", "two", "--session", id, before=UNPRIVILEGED)
    assert (done.code, "can't be written" in done.err, "log show" in done.err) == (1, True, True)
    assert desk.pieria("log", "verify", id, before=UNPRIVILEGED).code == 0
    desk.log.path.chmod(0)
    for verb in (("resume", id), ("log", "show", id), ("replay", id)):
        done = desk.pieria(*verb, before=UNPRIVILEGED)
        assert (done.code, "ermission denied" in done.err.lower() or "permission" in done.err) == (1, True), done
    listed = desk.pieria("sessions", before=UNPRIVILEGED)
    assert (listed.code, id in listed.text) == (0, True)
    desk.log.path.chmod(0o600)
    desk.sessions.chmod(0o500)
    done = desk.pieria("exec", "afresh", before=UNPRIVILEGED)
    assert (done.code, str(desk.sessions) in done.err, done.out) == (1, True, b"")
    desk.sessions.chmod(0o700)
    assert desk.log.path.read_bytes() == whole
    assert desk.pieria("exec", "two", "--session", id).out == b"Two.\n"


def test_a_deleted_blob_is_named_and_the_rest_is_shown(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("seq 1 3000")), say("One."))
    desk.exec("count")
    desk.spoilt.add(desk.log.path.name)
    lines = desk.log.path.read_bytes().split(b"\n")
    (at,) = [n for n, line in enumerate(lines) if b'"type":"blob"' in line and b"2999" in line and b"step" not in line][
        :1
    ]
    desk.log.path.write_bytes(b"\n".join(lines[:at] + lines[at + 1 :]))
    assert desk.pieria("log", "verify", desk.log.id).code == 6
    assert desk.pieria("replay", desk.log.id).code == 6
    shown = [json.loads(line) for line in desk.pieria("log", "show", desk.log.id, "--json").out.splitlines()]
    assert len(shown) == len(lines) - 2
