"""A disk that takes no more: said in plain words, nothing starts unrecorded, and it goes on when there is space."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.desk import Desk, ask, say, shell

LIMITED = (
    sys.executable, "-I", "-S", "-c",
    (
        "import os, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))\n"
        "os.execv(sys.argv[2], sys.argv[2:])"
    ),
)  # fmt: skip


@pytest.fixture
def small(desk: Desk) -> Iterator[Path]:
    """A file system of 3 MB for the state, or nothing where none may be mounted."""
    place = desk.base / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("no tmpfs may be mounted here")
    desk.environ["XDG_STATE_HOME"] = str(place)
    yield place
    desk.close()
    desk.look_over()
    shutil.copytree(place, desk.base / "kept")
    desk.environ["XDG_STATE_HOME"] = str(desk.base / "kept")
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> None:
    """Leave not one byte."""
    filler = os.open(place / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(filler, b"x" * 4096):
            continue
    os.close(filler)


def test_a_full_disk_parks_the_work_and_it_goes_on_when_there_is_space(desk: Desk, small: Path) -> None:
    """Cases 005, 007."""
    desk.commit({})
    long = "head -c 200000 /dev/urandom | base64"
    desk.answers(*[ask(shell(f"echo {n} >> n.txt; {long}")) for n in range(8)], say("Done."))
    spare = small / "spare"
    spare.write_bytes(b"x" * 2_750_000)
    going = desk.begin("exec", "fill it", "--mode", "full")
    assert going.process.stderr is not None
    said = b""
    while b"can't be written" not in said:
        line = going.process.stderr.readline()
        assert line, said
        said += line
    place = going.process.stderr.readline().decode()
    assert str(small) in place
    assert "bytes free" in place
    assert desk.log.id in place
    assert going.process.poll() is None
    started = len(desk.log.of("tool.started"))
    assert (desk.repo / "n.txt").read_text().count("\n") <= started  # nothing ran unrecorded
    spare.unlink()
    done = going.end()
    assert (done.code, done.out) == (0, b"Done.\n")
    assert (desk.repo / "n.txt").read_text() == "".join(f"{n}\n" for n in range(8))
    assert "can't be written" not in done.err  # said once, not twice a second


def test_reading_works_on_a_full_disk_and_opening_fails_at_once_with_the_reason(desk: Desk, small: Path) -> None:
    """Case 008."""
    desk.commit({})
    desk.answers(say("One."), say("Two."))
    desk.exec("one")
    id, before = desk.log.id, desk.log.path.read_bytes()
    fill(small)
    for done in desk.together(("sessions",), ("log", "show", id), ("log", "verify", id), ("replay", id)):
        assert done.code == 0
    done = desk.pieria("exec", "afresh")
    assert (done.code, done.wall_s < 4, "disk is full" in done.err, "hint:" in done.err) == (1, True, True, True)
    limit = (*LIMITED, str(len(before)))  # not one byte more, where a full disk may still have the rest of a block
    for verb in (("resume", id), ("exec", "two", "--session", id)):
        done = desk.pieria(*verb, before=limit)
        assert (done.code, done.wall_s < 4, "largest size" in done.err, "hint:" in done.err) == (1, True, True, True)
    assert desk.log.path.read_bytes() == before
    (small / "filler").unlink()
    assert desk.pieria("exec", "two", "--session", id).out == b"Two.\n"


def test_a_limit_on_file_sizes_ends_with_a_signal_and_goes_on_later(desk: Desk) -> None:  # case 005
    desk.commit({})
    desk.answers(ask(shell("echo x >> n.txt; seq 1 20000")), ask(shell("echo y >> n.txt")), say("Done."))
    going = desk.begin("exec", "write much", "--mode", "full", before=(*LIMITED, "30000"))
    assert going.process.stderr is not None
    said = b""
    while b"largest size" not in said:
        line = going.process.stderr.readline()
        assert line, said
        said += line
    assert (desk.repo / "n.txt").read_text() == "x\n"
    going.tell(signal.SIGINT)
    done = going.end(5)
    assert (done.code, "resume" in done.err) == (130, True)
    done = desk.pieria("resume", "--last", "--mode", "full")
    assert (done.code, done.out) == (0, b"Done.\n"), done.err
    assert (desk.repo / "n.txt").read_text() == "x\ny\n"  # nothing twice


def test_a_timeout_ends_a_paused_session(desk: Desk) -> None:
    desk.commit({})
    desk.answers(ask(shell("seq 1 20000")), say("Done."))
    done = desk.exec("write much", "--timeout", "1", before=(*LIMITED, "30000"))
    assert (done.code, done.wall_s < 8, done.err.count("largest size")) == (4, True, 1)
    assert os.path.getsize(desk.log.path) <= 30000
    assert desk.pieria("resume", "--last", "--mode", "full").out == b"Done.\n"
