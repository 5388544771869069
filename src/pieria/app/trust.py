"""Trust in a project's configuration: shown in full, then bound to exactly the bytes that were shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pieria.config import trust
from pieria.config.dirs import home_dirs, state_dir
from pieria.config.files import parse_file
from pieria.config.load import ProjectFile, find_project
from pieria.config.place import repository_root
from pieria.core.errors import ApprovalNeeded, UsageError

_REMARKS = {
    "base_url": "your prompts, code and key are sent there",
    "api_key_env": "this variable's value is sent to the model's host",
    "allow": "these calls run without a question",
    "add_dirs": "agents may read and change files there",
}
_FULL = "agents may do everything without a question"


def give_trust(environ: Mapping[str, str], cwd: str, *, is_sure: bool) -> int:
    """Show what the project's config would set; trust it once the person says so."""
    dirs = home_dirs(environ)
    project = _project(cwd)
    if project is None:
        raise UsageError(
            f"no .pieria/config.toml in {visible(cwd)} or above it: nothing to trust",
            hint="run this in the project's folder; your own config needs no trust",
        )
    if project.data is None:
        raise UsageError(project.problem, hint="mend the file first")
    state = state_dir(dirs)
    values = parse_file(project.path, project.data, home=dirs.home)
    standing = trust.standing(project.root, project.data, state=state)
    sys.stdout.write(f"{visible(project.path)} sets:\n")
    for key, value in values.items():
        remark = _FULL if (key, value) == ("mode", "full") else _REMARKS.get(key, "")
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        sys.stdout.write(f"  {key} = {visible(shown)}" + (f"    ({remark})" if remark else "") + "\n")
    if not values:
        sys.stdout.write("  nothing\n")
    if standing.trusted:
        sys.stdout.write("This is trusted already.\n")
        return 0
    if standing.changed:
        sys.stdout.write("It has changed since you trusted it.\n")
    sys.stdout.flush()
    if not (is_sure or _says_yes(project.root)):
        sys.stdout.write("Not trusted: this config stays ignored.\n")
        return 0
    trust.trust(project.root, project.data, state=state)
    sys.stdout.write(f"Trusted, until the file changes: {visible(project.root)}\n")
    return 0


def revoke_trust(environ: Mapping[str, str], cwd: str) -> int:
    """Trust nothing of this folder any more."""
    project = _project(cwd)
    root = project.root if project else repository_root(cwd) or os.path.realpath(cwd)
    was = trust.untrust(root, state=state_dir(home_dirs(environ)))
    sys.stdout.write(f"{visible(root)} is not trusted" + (" any more.\n" if was else ".\n"))
    return 0


def visible(text: str) -> str:
    """Write out everything that a terminal would act on or hide: controls, zero-width and direction marks."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def _project(cwd: str) -> ProjectFile | None:
    return find_project(os.path.realpath(cwd), repository_root(cwd))


def _says_yes(root: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise ApprovalNeeded("nobody is here to say yes", hint="read the above, then: pieria trust --yes")
    sys.stderr.write(f"Trust this config in {visible(root)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
