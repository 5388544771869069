"""`pieria trust`: shows all that would be set, and records nothing that was not said yes to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
from pieria.commands.trust import main
from pieria.core.errors import PieriaError
try:
    sys.exit(main(sys.argv[1:]))
except PieriaError as problem:
    sys.stderr.write(f"{problem}\\nhint: {problem.hint}\\n")
    sys.exit(problem.exit_code)
"""


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / ".pieria").mkdir(parents=True)
    (folder / ".pieria/config.toml").write_text('mode = "full"\nallow = ["shell(make *)"]\nmodel = "m\u202e\u200b"\n')
    return folder


def pieria_trust(folder: Path, *words: str) -> tuple[int, str, str]:
    argv = [sys.executable, "-c", CODE, *words]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr


def test_with_nobody_to_ask_it_shows_the_config_and_records_nothing(project: Path, home: Path) -> None:
    code, said, problem = pieria_trust(project)
    assert code == 3
    assert said == (
        f"{project}/.pieria/config.toml sets:\n"
        "  mode = full    (agents may do everything without a question)\n"
        "  allow = shell(make *)    (these calls run without a question)\n"
        "  model = m\\u202e\\u200b\n"
    )
    assert problem == "nobody is here to say yes\nhint: read the above, then: pieria trust --yes\n"
    assert not (home / ".local/state/pieria/trust.json").exists()


def test_yes_is_recorded_until_the_file_changes_or_trust_is_taken_back(project: Path) -> None:
    assert pieria_trust(project, "--yes")[1].endswith(f"Trusted, until the file changes: {project}\n")
    assert pieria_trust(project)[1].endswith("This is trusted already.\n")
    (project / ".pieria/config.toml").write_text('mode = "ask"\n')
    code, said, _ = pieria_trust(project)
    assert (code, said.endswith("It has changed since you trusted it.\n")) == (3, True)
    assert pieria_trust(project, "--revoke") == (0, f"{project} is not trusted any more.\n", "")
    assert pieria_trust(project, "--revoke") == (0, f"{project} is not trusted.\n", "")


def test_a_person_at_a_terminal_is_asked(project: Path) -> None:
    for answer, said in ((b"n\n", b"Not trusted"), (b"y\n", b"Trusted, until")):
        ours, theirs = os.openpty()
        argv = [sys.executable, "-c", CODE]
        program = subprocess.Popen(argv, cwd=project, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.write(ours, answer)
        out, _ = program.communicate()
        os.close(ours)
        assert said in out


def test_nothing_to_trust_and_broken_config_are_usage_errors(project: Path, tmp_path: Path) -> None:
    (project / ".pieria/config.toml").write_text("mode = 1\n")
    code, said, problem = pieria_trust(project, "--yes")
    assert (code, said) == (2, "")
    assert problem.startswith(f"{project}/.pieria/config.toml:1: mode: ")
    (tmp_path / "bare").mkdir()
    assert pieria_trust(tmp_path / "bare", "--yes")[0] == 2
    assert pieria_trust(project, "--yes", "--revoke")[0] == 2


def test_where_no_project_has_a_config_it_says_where_to_go(home: Path, tmp_path: Path) -> None:
    code, said, problem = pieria_trust(tmp_path)
    assert (code, said) == (2, "")
    assert problem.startswith(
        f"no .pieria/config.toml in {tmp_path} or above it: nothing to trust\nhint: run this in the"
    )
