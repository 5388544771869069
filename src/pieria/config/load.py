"""All settings in one frozen value: flags before environment before project before person before built-in.

Rules and added folders add up over all sources, so that no source can drop another's deny rule.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from pieria.config import trust
from pieria.config.dirs import HomeDirs, home_dirs
from pieria.config.files import at_home, parse_file, read_file
from pieria.config.keys import Checked, Wrong, checked, known_keys
from pieria.config.place import repository_root
from pieria.core.errors import UsageError
from pieria.core.policy import DEFAULT_MODE
from pieria.core.values import Value

PROJECT_FILE = ".pieria/config.toml"
ADDED_UP = ("allow", "deny", "add_dirs")
VARIABLES = {
    "PIERIA_MODEL": "model",
    "PIERIA_BASE_URL": "base_url",
    "PIERIA_API_KEY": "api_key_env",
    "PIERIA_MODE": "mode",
}


class Config(Value, frozen=True, gc=False):
    """The settings of one run. None or "": not set. `origins` says for each set key where it comes from.

    `api_key_env` is the name of the variable that holds the key; the key itself is never in here. `root` is the
    repository's root, else the folder itself. `trusted`: the project's file took part, or this run was told to trust.
    """

    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    mode: str = DEFAULT_MODE
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    max_steps: int | None = None
    max_tokens: int | None = None
    timeout_s: float | None = None
    effort: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    root: str = ""
    trusted: bool = False
    notices: tuple[str, ...] = ()
    origins: dict[str, str] = msgspec.field(default_factory=dict)


class Source(Value, frozen=True, gc=False):
    """One source of settings: its name for people, the folder its relative paths start at, its checked keys."""

    name: str
    base: str
    values: Mapping[str, Checked]


class ProjectFile(Value, frozen=True, gc=False):
    """A project's configuration: the folder that holds `.pieria`, the file, its bytes (None: can't be read)."""

    root: str
    path: str
    data: bytes | None
    problem: str = ""


def resolve(flags: Mapping[str, object], environ: Mapping[str, str], cwd: str) -> Config:
    """Bring all sources together. `flags` has keys of the config (None: not given), and `trust`. Raises UsageError."""
    dirs = home_dirs(environ)
    here = os.path.realpath(cwd)
    root = repository_root(here)
    project, trusted, notices = _project_source(here, root, dirs, told=bool(flags.get("trust")))
    sources = (_flag_source(flags, here, dirs), _variable_source(environ), project, _person_source(dirs))
    values, origins = _merge([source for source in sources if source is not None])
    fields = {"root": root or here, "trusted": trusted, "notices": notices, "origins": origins}
    return msgspec.convert({**values, **fields}, Config)


def api_key(config: Config, environ: Mapping[str, str]) -> str:
    """Return the key that the config names, "" when it names none. A named one that is not set is a UsageError."""
    name = config.api_key_env
    if name and not environ.get(name):
        raise UsageError(
            f"the variable {name} is to hold the key ({config.origins['api_key_env']} says so), and it is not set",
            hint=f"export {name}=…, or name another variable with api_key_env",
        )
    return environ.get(name, "") if name else ""


def find_project(here: str, root: str) -> ProjectFile | None:
    """Find the nearest `.pieria/config.toml` from a folder up to the repository's root ("": that folder alone)."""
    stop = root or here
    while True:
        path = f"{here.rstrip('/')}/{PROJECT_FILE}"
        if os.path.lexists(path):
            try:
                return ProjectFile(here, path, read_file(path))
            except UsageError as problem:
                return ProjectFile(here, path, None, str(problem))
        if here in (stop, "/"):
            return None
        here = os.path.dirname(here)


# --- sources --------------------------------------------------------------------------------------------------


def _flag_source(flags: Mapping[str, object], here: str, dirs: HomeDirs) -> Source:
    values: dict[str, Checked] = {}
    for key in known_keys():
        value = flags.get(key)
        if value is None or (key in ADDED_UP and not value):
            continue
        if isinstance(value, list | tuple):
            value = [at_home(item, dirs.home) if isinstance(item, str) else item for item in value]
        name = "--" + _FLAG_NAMES.get(key, key).replace("_", "-")
        try:
            values[key] = checked(key, value)
        except Wrong as problem:
            raise UsageError(f"{name}: {problem}", hint="pieria --help shows what each flag takes") from problem
    return Source("flags", here, values)


_FLAG_NAMES = {"timeout_s": "timeout", "add_dirs": "add_dir"}


def _variable_source(environ: Mapping[str, str]) -> Source:
    values: dict[str, Checked] = {}
    for name, key in VARIABLES.items():
        value = environ.get(name)
        if not value:
            continue
        try:
            values[key] = checked(key, name if key == "api_key_env" else value)
        except Wrong as problem:
            raise UsageError(f"environment variable {name}: {problem}", hint=f"change or unset {name}") from problem
    return Source("environment", "", values)


def _person_source(dirs: HomeDirs) -> Source | None:
    path = f"{dirs.config}/config.toml"
    data = read_file(path) if dirs.config else None
    return None if data is None else Source(path, "", parse_file(path, data, home=dirs.home))


def _project_source(here: str, root: str, dirs: HomeDirs, *, told: bool) -> tuple[Source | None, bool, tuple[str, ...]]:
    """Return the project's source if it is trusted, whether it is, and at most one notice."""
    found = find_project(here, root)
    if found is None:
        return None, told, ()
    if found.data is None:
        if told:
            raise UsageError(found.problem, hint="mend the file, or leave out --trust")
        return None, False, (f"{found.problem}; the project's config is ignored",)
    standing = trust.Standing(trusted=True) if told else trust.standing(found.root, found.data, state=dirs.state)
    if not standing.trusted:
        return None, False, (_notice(found.path, standing),)
    return Source(found.path, found.root, parse_file(found.path, found.data, home=dirs.home)), True, ()


def _notice(path: str, standing: trust.Standing) -> str:
    why = "it has changed since you trusted it" if standing.changed else "this folder is not trusted"
    return f"{path} is ignored: {standing.problem or why} (see it and trust it: pieria trust)"


# --- merging --------------------------------------------------------------------------------------------------


def _merge(sources: list[Source]) -> tuple[dict[str, Checked], dict[str, str]]:
    values: dict[str, Checked] = {}
    origins: dict[str, str] = {}
    for source in sources:
        for key, value in source.values.items():
            if key in ADDED_UP and isinstance(value, tuple):
                new = _folders(value, source) if key == "add_dirs" else value
                old = values.get(key, ())
                assert isinstance(old, tuple)
                values[key] = tuple(dict.fromkeys(old + new))
                origins[key] = f"{origins[key]}, {source.name}" if key in origins else source.name
            elif key not in values:
                values[key] = value
                origins[key] = source.name
    return values, {key: origins.get(key, "built-in") for key in known_keys()}


def _folders(given: tuple[str, ...], source: Source) -> tuple[str, ...]:
    """Real folders to add. Relative ones start at the project or at the working folder, never at a home."""
    found = []
    for path in given:
        if not source.base and not path.startswith("/"):
            raise UsageError(f"{source.name}: add_dirs: {path!r} is relative", hint="write it in full, or as ~/…")
        real = os.path.realpath(os.path.join(source.base, path))
        if not os.path.isdir(real):
            raise UsageError(f"{source.name}: add_dirs: {path!r} is no folder", hint="make it, or take it out")
        found.append(real)
    return tuple(found)
