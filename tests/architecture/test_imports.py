"""Importing does nothing: no thread, no file or socket opened, no process, nothing written.

It is watched from inside, by an audit hook in a fresh interpreter. And `pieria --version` has to be quick, so
it loads next to nothing; modules are named, since a limit in milliseconds fails on a busy machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.conftest import Plant
from tests.architecture.source import ROOT, files

WATCHED = r"""
import _thread, importlib, json, os, sys

source, *names = sys.argv[1:]
source = os.path.realpath(source) + os.sep
installed = tuple(os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, *sys.path) if place)
writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
families = ("socket.", "subprocess.", "shutil.", "tempfile.", "sqlite3.", "pty.")
deeds = []

def reads_code(path, mode, flags):
    "That is what an import is: Python files of ours, anything of the interpreter's."
    if flags & writing or (mode and set(mode) & set("wax+")):
        return False
    place = os.path.realpath(os.fsdecode(path))
    return place.endswith((".py", ".pyc")) if place.startswith(source) else place.startswith(installed)

def watch(event, arguments):
    if event == "open":
        if not isinstance(arguments[0], int) and not reads_code(*arguments):
            deeds.append(f"{current}: open {arguments[0]}")
    elif event.startswith(families) or event in {
        "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.mkdir",
        "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate",
        "os.utime", "os.putenv", "os.unsetenv", "fcntl.flock",
    }:
        deeds.append(f"{current}: {event}")

def counted(start):
    def begin(*arguments, **named):
        deeds.append(f"{current}: a thread")
        return start(*arguments, **named)
    return begin

# Starting a thread is no audit event before Python 3.12.
for name in ("start_new_thread", "start_joinable_thread"):
    if hasattr(_thread, name):
        setattr(_thread, name, counted(getattr(_thread, name)))
sys.addaudithook(watch)
for current in names:
    importlib.import_module(current)
print(json.dumps(deeds))
"""

VERSION = r"""
import sys
sys.argv = ["pieria", "--version"]
try:
    from pieria.cli import main
    status = main()
except SystemExit as end:
    status = end.code
print("\n" + "\n".join(sorted(sys.modules)))
sys.exit(status)
"""

SLOW = {
    "argparse",
    "asyncio",
    "h11",
    "json",
    "logging",
    "msgspec",
    "re",
    "socket",
    "ssl",
    "subprocess",
    "typing",
}
"""None of these for `--version`: each costs more than all that it has to do."""


def python(*argv: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run an interpreter that writes no caches and sees the source tree of `root` first."""
    return subprocess.run(
        [sys.executable, "-B", "-c", *argv],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def modules(root: Path) -> list[str]:
    """Return the names of all modules, parents first."""
    found = (path.relative_to(root / "src").with_suffix("") for path in files(root, "src"))
    return sorted({".".join(part for part in path.parts if part != "__init__") for path in found})


def deeds_of_imports(root: Path) -> list[str]:
    done = python(WATCHED, str(root / "src"), *modules(root), root=root)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_importing_any_module_does_nothing() -> None:
    assert deeds_of_imports(ROOT) == []


def test_modules_that_act_when_imported_are_found(plant: Plant) -> None:
    root = plant(
        {
            "src/pieria/__init__.py": "",
            "src/pieria/a_thread.py": "import threading\nthreading.Thread(target=int).start()\n",
            "src/pieria/b_socket.py": "import socket\nsocket.socket().close()\n",
            "src/pieria/c_read.py": "open('/etc/hosts').close()\n",
            "src/pieria/d_write.py": "from pathlib import Path\nPath('made').write_text('x')\n",
            "src/pieria/e_spawn.py": "import subprocess\nsubprocess.run(['true'])\n",
            "src/pieria/f_own.py": "open(__file__.replace('f_own.py', 'data.toml')).close()\n",
            "src/pieria/data.toml": "",
            "src/pieria/g_fine.py": "import json, asyncio\nx = json.dumps({})\n",
        }
    )
    found = deeds_of_imports(root)
    assert [name for name in modules(root) if any(deed.startswith(f"{name}:") for deed in found)] == [
        "pieria.a_thread",
        "pieria.b_socket",
        "pieria.c_read",
        "pieria.d_write",
        "pieria.e_spawn",
        "pieria.f_own",
    ], found


def loaded_by_version(root: Path) -> tuple[str, set[str]]:
    """Run `pieria --version`; return its first line and the slow modules it loaded."""
    bare = set(python("import sys; print('\\n'.join(sys.modules))", root=root).stdout.split())
    done = python(VERSION, root=root)
    assert done.returncode in {0, None}, done.stderr
    said, *names = done.stdout.splitlines()
    return said, {name for name in names if name in SLOW} - bare


def test_version_loads_next_to_nothing() -> None:
    said, slow = loaded_by_version(ROOT)
    assert said.startswith("pieria ")
    assert slow == set()


def test_a_version_that_loads_the_world_is_found(plant: Plant) -> None:
    root = plant(
        {
            "src/pieria/__init__.py": "",
            "src/pieria/cli.py": "import argparse, asyncio\ndef main():\n    print('pieria 0')\n",
        }
    )
    assert {"argparse", "asyncio"} <= loaded_by_version(root)[1]
