"""The scripted server as a program, and script files that can't be used."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from pieria.core.errors import UsageError
from pieria.core.ports import Answer
from pieria.models.chat import ChatModel
from pieria.models.script import Received, load_script, parse_script
from tests.models.conftest import body

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


async def test_the_program_serves_logs_and_stops(tmp_path: Path) -> None:
    script, port, log = tmp_path / "script.json", tmp_path / "port", tmp_path / "log"
    script.write_text('[{"text": "hello"}]', encoding="utf-8")
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pieria.models.scripted", str(script), "--port-file", str(port), "--log", str(log),
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert program.stdout is not None
    url = (await program.stdout.readline()).decode().strip()
    assert url == f"http://127.0.0.1:{port.read_text(encoding='ascii').strip()}/v1"
    model = ChatModel(url)
    answer = await model.stream(body(), lambda _: None)
    assert isinstance(answer, Answer)
    assert answer.text == "hello"
    await model.close()
    program.send_signal(signal.SIGTERM)
    assert await program.wait() == 0
    lines = log.read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=Received) for line in lines] == [
        Received(sha256(body()).hexdigest(), len(body()), 0, 1)
    ]


async def test_the_program_says_what_is_wrong_with_a_script(tmp_path: Path) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pieria.models.scripted", str(tmp_path / "none.json"),
        stderr=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    _, said = await program.communicate()
    assert program.returncode == 2
    assert said.decode().startswith("the script can't be read: ")


@pytest.mark.parametrize("name", ["absent.json", ".", "a\0b", "x" * 300])
def test_a_script_file_that_cannot_be_read_says_what_to_give(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the script can't be read") as caught:
        load_script(f"{tmp_path}/{name}")
    assert "scripted:PATH" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[{"txt": "typo"}]',
        '[{"calls": [{}]}]',
        '{"scripts": [{"when": "x"}]}',
        "\udcff",
        '[{"body":' + "[" * 9000,
    ],
)
def test_a_script_that_makes_no_sense_is_refused(text: str, tmp_path: Path) -> None:
    data = text.encode("utf-8", "surrogateescape")
    with pytest.raises(UsageError, match="the script can't be used"):
        parse_script(data)
    place = tmp_path / "script.json"
    place.write_bytes(data)
    with pytest.raises(UsageError, match="the script can't be used"):
        load_script(str(place))
