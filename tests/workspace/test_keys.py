"""Keys are taken from the environment and wiped from the memory that /proc shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pieria.workspace.keys import is_key, take_keys

SECRET = "sk-very-secret-0123456789"

CHILD = """
import os, sys
from pieria.workspace.keys import take_keys, wipe
taken = take_keys(os.environ)
if sys.argv[1] == "wipe":
    wipe(taken)
print(sorted(taken), flush=True)
sys.stdin.read()
"""


def shown(child: subprocess.Popen[bytes]) -> bytes:
    return Path(f"/proc/{child.pid}/environ").read_bytes()


def start(how: str) -> subprocess.Popen[bytes]:
    given = {
        "PATH": os.defpath,
        "PIERIA_API_KEY": SECRET,
        "GH_TOKEN": SECRET + "2",
        "AWS_SECRET_ACCESS_KEY": SECRET + "3",
        "PLAIN": "stays",
        "EMPTY_TOKEN": "",
        "AFTER": "stays too",
    }
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, how], env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout
    assert child.stdout.readline() == b"['AWS_SECRET_ACCESS_KEY', 'EMPTY_TOKEN', 'GH_TOKEN', 'PIERIA_API_KEY']\n"
    return child


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_wiped_keys_are_gone_from_proc_and_the_rest_stays() -> None:
    with start("wipe") as child:
        found = shown(child)
        child.communicate()
    assert child.returncode == 0
    assert SECRET.encode() not in found
    entries = set(found.split(b"\0"))
    assert {b"PLAIN=stays", b"AFTER=stays too", b"PIERIA_API_KEY="} <= entries


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_without_the_wipe_proc_still_shows_them() -> None:
    with start("take") as child:
        found = shown(child)
        child.communicate()
    assert found.count(SECRET.encode()) == 3


def test_keys_are_taken_and_all_else_is_left() -> None:
    environ = {"OPENAI_API_KEY": "a", "HOME": "/h", "npm_config_auth_token": "b", "AWS_REGION": "x", "MONKEY": "y"}
    assert take_keys(environ) == {"OPENAI_API_KEY": "a", "npm_config_auth_token": "b"}
    assert environ == {"HOME": "/h", "AWS_REGION": "x", "MONKEY": "y"}


@pytest.mark.parametrize("name", ["PIERIA_API_KEY", "X_TOKEN", "TOKEN", "A_SECRET", "AWS_SESSION_TOKEN", "DB_PASSWORD"])
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_key(name)


@pytest.mark.parametrize("name", ["PATH", "KEYBOARD", "TOKENIZERS_PARALLELISM", "SECRETARY", "GIT_AUTHOR_NAME"])
def test_other_names_are_not(name: str) -> None:
    assert not is_key(name)
