"""The demo: a scratch git repository with a real bug and a failing test, mended by a real session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

import msgspec

from pieria.app import logs, replaying
from pieria.app.drive import Asked, drive
from pieria.core.errors import UsageError
from pieria.store.index import latest_session
from pieria.store.paths import session_of, sessions_dir

PROGRAM = '''\
"""Split a bill between friends, in cents."""


def split(total: int, people: int) -> list[int]:
    """Return each one's share; the shares add up to the total."""
    return [total // people] * people
'''

TEST = """\
import unittest

from bill import split


class Shares(unittest.TestCase):
    def test_even(self) -> None:
        self.assertEqual(split(900, 3), [300, 300, 300])

    def test_shares_add_up(self) -> None:
        self.assertEqual(sum(split(1000, 3)), 1000)


if __name__ == "__main__":
    unittest.main()
"""

PROMPT = "The test of bill.py fails. Find out why, mend it, and show that the test passes."
RULE = "shell(python3 -m unittest *)"
CHECK = "python3 -m unittest -v"

ANSWERS: list[dict[str, object]] = [
    {
        "text": "I look at the files and run the test.",
        "calls": [
            {"name": "glob", "arguments": {"pattern": "*.py"}},
            {"name": "shell", "arguments": {"command": CHECK}},
        ],
    },
    {
        "text": "The shares of 1000 cents for three add up to 999: the rest is lost. I read the code.",
        "calls": [
            {"name": "read", "arguments": {"path": "bill.py"}},
            {"name": "read", "arguments": {"path": "test_bill.py"}},
        ],
    },
    {
        "text": "Whole division drops the remainder. The first friends pay one cent more each.",
        "calls": [
            {
                "name": "edit",
                "arguments": {
                    "path": "bill.py",
                    "edits": [
                        {
                            "old": "    return [total // people] * people\n",
                            "new": "    share, rest = divmod(total, people)\n"
                            "    return [share + 1] * rest + [share] * (people - rest)\n",
                        }
                    ],
                },
            }
        ],
    },
    {"calls": [{"name": "shell", "arguments": {"command": CHECK}}]},
    {
        "text": "Mended bill.py: split() lost the remainder of the division. Now the first friends pay one cent more "
        "each, so the shares always add up. Both tests pass (python3 -m unittest -v)."
    },
]


def demo(*, as_json: bool) -> int:
    """Run it all: repository, session, test, verification, replay. Returns 0 only if each part went well."""
    for program in ("git", "python3"):
        if shutil.which(program) is None:
            raise UsageError(f"the demo needs {program}", f"install {program}, then run it again")
    folder = os.path.realpath(tempfile.mkdtemp(prefix="pieria-demo-"))
    _repository(folder)
    script = os.path.join(folder, ".git", "demo-model.json")
    with open(script, "wb") as target:
        target.write(msgspec.json.encode(ANSWERS))
    _tell(f"A scratch repository with a failing test: {folder}", as_json=as_json)
    _tell(f"> {PROMPT}\n", as_json=as_json)
    flags: dict[str, object] = {"model": f"scripted:{script}", "mode": "edits", "allow": (RULE,)}
    code = drive(Asked(prompt=PROMPT, cwd=folder, flags=flags, json=as_json))
    if code != 0:
        return code
    row = latest_session(sessions_dir(os.environ), folder)
    if row is None or _unittest(folder) != 0:
        raise UsageError("the demo's test does not pass", f"look at {folder}")
    if as_json:
        return 0
    sys.stdout.write("\nThe log of what happened, checked and replayed:\n")
    sys.stdout.flush()
    code = logs.verify(row.path, as_json=False)
    code = code or replaying.replay_log(row.path, to=None, golden=None, as_json=False)
    id = session_of(row.path)
    sys.stdout.write(
        f"\nLook at it:\n  pieria log show {id}\n  pieria log stats {id}\n  pieria replay {id}\n"
        f"  git -C {folder} diff\n"
    )
    return code


def _repository(folder: str) -> None:
    for name, text in (("bill.py", PROGRAM), ("test_bill.py", TEST), (".gitignore", "__pycache__/\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as target:
            target.write(text)
    identity = ("-c", "user.name=Pieria demo", "-c", "user.email=demo@localhost", "-c", "core.hooksPath=/dev/null")
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "A bill splitter with a bug"]):
        subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _unittest(folder: str) -> int:
    done = subprocess.run(CHECK.split(), cwd=folder, check=False, capture_output=True)
    return done.returncode


def _tell(words: str, *, as_json: bool) -> None:
    if not as_json:
        sys.stdout.write(f"{words}\n")
        sys.stdout.flush()
