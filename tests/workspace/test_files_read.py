"""Reading: regular files, whole, or words that help."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from pathlib import Path

import pytest

from pieria.core.ports import FileImage, FileProblem
from pieria.workspace.files import DiskFiles
from tests.workspace.nobody import as_nobody, open_place

pytestmark = pytest.mark.unprivileged
__all__ = ["open_place"]

FILES = DiskFiles()


def problem(path: Path | str, limit: int = 1000) -> tuple[str, str]:
    with pytest.raises(FileProblem) as caught:
        FILES.read(str(path), limit=limit)
    return caught.value.kind, str(caught.value)


def test_a_file_is_read_whole_with_hash_and_mode(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4
    path = tmp_path / "caf\udce9"
    path.write_bytes(data)
    path.chmod(0o750)
    wanted = FileImage(str(path), data, hashlib.sha256(data).hexdigest(), 0o750)
    assert FILES.read(str(path), limit=len(data)) == wanted
    assert FILES.hash(str(path)) == wanted.sha256


def test_one_byte_too_many_is_too_big(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1001)
    kind, words = problem(tmp_path / "a")
    assert (kind, "1,001 bytes" in words) == ("too_big", True)


def test_a_file_that_tells_no_size_is_read_up_to_the_limit() -> None:
    place = Path("/proc/self/status")
    if place.exists():
        assert FILES.read(str(place), limit=100_000).data.startswith(b"Name:")
        assert problem("/proc/self/maps", limit=10)[0] == "too_big"


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("link")
    (tmp_path / "folder").mkdir()
    place = Path("/tmp") / f"pieria-{os.getpid()}.sock"  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        assert problem(place)[0] == "special"
        assert FILES.hash(str(place)) is None
    place.unlink()
    assert problem(tmp_path / "pipe") == ("special", f"{tmp_path}/pipe is a named pipe; only regular files are read.")
    assert problem("/dev/zero")[0] == "special"
    assert problem(tmp_path / "folder")[0] == "folder"
    assert problem(tmp_path / "link")[0] == "special"
    for name in ("pipe", "folder", "link", "absent", "folder/below"):
        assert FILES.hash(str(tmp_path / name)) is None


def test_a_link_in_the_place_of_a_resolved_path_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert problem(tmp_path / "link")[0] == "special"


def test_names_that_no_file_can_have_are_refused() -> None:
    assert problem("/x\0y")[0] == "refused"
    assert problem("/" + "x" * 300)[0] == "refused"
    assert problem("/\ud800")[0] == "refused"


def test_a_file_that_we_may_not_read_is_denied(open_place: Path) -> None:
    path = open_place / "a"

    def body() -> None:
        path.write_text("x")
        path.chmod(0)
        assert problem(path) == ("denied", f"The system does not let us read {path}.")
        with pytest.raises(FileProblem) as caught:
            FILES.hash(str(path))
        assert caught.value.kind == "denied"

    as_nobody(body)


def test_a_missing_file_names_like_ones_and_those_of_its_name(tmp_path: Path) -> None:
    for name in ("public/css/home.css", "public/mobile/css/home.css", "public/css/house.css", "node_modules/home.css"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    kind, words = problem(tmp_path / "css" / "home.css")
    assert kind == "absent"
    assert f"The folder {tmp_path}/css does not exist." in words
    assert f"{tmp_path}/public/css/home.css, {tmp_path}/public/mobile/css/home.css" in words
    assert "node_modules" not in words
    assert "exactly as given" in words
    words = problem(tmp_path / "home.css")[1]
    assert f"{tmp_path}/public/css/home.css, {tmp_path}/public/mobile/css/home.css" in words
    assert f"In {tmp_path} there is: public." in problem(tmp_path / "Public" / "css" / "home.css")[1]
    assert "there is: house.css, home.css." in problem(tmp_path / "public" / "css" / "hose.css")[1]
    assert problem(tmp_path / "public" / "css" / "zzz") == ("absent", f"There is no file {tmp_path}/public/css/zzz.")


def test_a_file_as_a_folder_is_absent(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert problem(tmp_path / "a" / "b")[0] == "absent"


def test_a_file_that_is_replaced_all_the_time_is_read_as_one_or_the_other(tmp_path: Path) -> None:
    path = tmp_path / "a"
    sides = [b"a" * 300_000, b"b" * 200_000]
    path.write_bytes(sides[0])
    stop = threading.Event()

    def replace() -> None:
        count = 0
        while not stop.is_set():
            count += 1
            (tmp_path / "next").write_bytes(sides[count % 2])
            (tmp_path / "next").replace(path)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        seen = [FILES.read(str(path), limit=10**6).data in sides for _ in range(50)]
    finally:
        stop.set()
        writer.join()
    assert all(seen)


def test_what_is_read_is_a_state_that_the_file_was_really_in(tmp_path: Path) -> None:
    path, block, blocks = tmp_path / "a", 100_000, 30
    path.write_bytes(bytes(block * blocks))
    stop = threading.Event()

    def overwrite() -> None:
        generation = 0
        while not stop.is_set():
            generation += 1
            with path.open("r+b", buffering=0) as file:
                for _ in range(blocks):
                    file.write(bytes([generation % 251]) * block)

    writer = threading.Thread(target=overwrite)
    writer.start()
    kinds = set()
    try:
        for _ in range(30):
            try:
                data = FILES.read(str(path), limit=10**7).data
            except FileProblem as caught:
                kinds.add(caught.kind)
                continue
            newest = data[0]
            edge = len(data) - len(data.lstrip(data[:1]))
            assert data[edge:] == bytes([(newest - 1) % 251]) * (len(data) - edge)
    finally:
        stop.set()
        writer.join()
    assert kinds <= {"other"}
