"""Configuration: which source wins, what is refused with its line, and what an untrusted project may do (nothing)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pieria.config.load import Config, api_key, resolve
from pieria.config.trust import trust
from pieria.core.errors import UsageError


class Setting:
    """A home and a project of which a test writes the files."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home = home
        self.project = project
        self.environ = {"HOME": str(home)}
        (project / ".git").mkdir(parents=True)
        (project / ".git/HEAD").write_text("ref: refs/heads/main\n")

    def person(self, text: str | bytes) -> Path:
        return write(self.home / ".config/pieria/config.toml", text)

    def own(self, text: str | bytes, *, below: str = ".") -> Path:
        return write(self.project / below / ".pieria/config.toml", text)

    def resolve(self, flags: Mapping[str, object] | None = None, *, below: str = ".", **environ: str) -> Config:
        return resolve(flags or {}, {**self.environ, **environ}, str(self.project / below))

    def refused(self, flags: Mapping[str, object] | None = None, **environ: str) -> tuple[str, str]:
        with pytest.raises(UsageError) as caught:
            self.resolve(flags, **environ)
        return str(caught.value), caught.value.hint


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    (tmp_path / "home").mkdir()
    return Setting(tmp_path / "home", tmp_path / "app")


def test_without_any_source_the_built_in_settings_stand(setting: Setting) -> None:
    found = setting.resolve()
    assert found == Config(root=str(setting.project), origins=dict.fromkeys(found.origins, "built-in"))
    assert found.mode == "edits"


def test_flags_beat_environment_beats_project_beats_person(setting: Setting) -> None:
    person = setting.person(
        'model = "person"\nmode = "ask"\neffort = "low"\nmax_steps = 1\nbase_url = "http://person"\n'
    )
    own = setting.own('model = "project"\nmode = "plan"\neffort = "high"\nbase_url = "http://project"\n')
    found = setting.resolve(
        {"model": "flag", "trust": True, "mode": None}, PIERIA_MODEL="env", PIERIA_MODE="full", PIERIA_BASE_URL=""
    )
    assert (found.model, found.mode, found.base_url, found.effort, found.max_steps) == (
        "flag", "full", "http://project", "high", 1,
    )  # fmt: skip
    assert {key: found.origins[key] for key in ("model", "mode", "base_url", "max_steps", "temperature")} == {
        "model": "flags",
        "mode": "environment",
        "base_url": str(own),
        "max_steps": str(person),
        "temperature": "built-in",
    }


def test_rules_and_folders_of_all_sources_add_up(setting: Setting) -> None:
    (setting.project / "docs").mkdir()
    (setting.home / "notes").mkdir()
    person = setting.person('deny = ["shell(rm)"]\nallow = ["shell(ls)"]\nadd_dirs = ["~/notes"]\n')
    own = setting.own('deny = []\nallow = ["shell(make)", "shell(ls)"]\nadd_dirs = ["docs"]\n')
    found = setting.resolve({"deny": ["edit(~/x)"], "allow": [], "trust": True})
    assert found.deny == (f"edit({setting.home}/x)", "shell(rm)")
    assert found.allow == ("shell(make)", "shell(ls)")
    assert found.add_dirs == (str(setting.project / "docs"), str(setting.home / "notes"))
    assert found.origins["deny"] == f"flags, {own}, {person}"


def test_every_key_of_a_file_arrives_with_its_type(setting: Setting) -> None:
    setting.person(
        'model = "chat:m"\nbase_url = "https://h/v1"\napi_key_env = "KEY"\nmode = "full"\nallow = ["read"]\n'
        'deny = ["shell( git  push * )"]\nmax_steps = 3\nmax_tokens = 1_000\ntimeout_s = 5\neffort = "high"\n'
        "temperature = 0\nmax_output_tokens = 9\n"
    )
    found = setting.resolve()
    assert found == Config(
        model="chat:m", base_url="https://h/v1", api_key_env="KEY", mode="full", allow=("read",),
        deny=("shell( git  push * )",), max_steps=3, max_tokens=1000, timeout_s=5.0, effort="high", temperature=0.0,
        max_output_tokens=9, root=str(setting.project), origins=found.origins,
    )  # fmt: skip


# --- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "said", "hint"),
    [
        ("model = \n", 1, "broken TOML", "KEY = VALUE"),
        ("\n\nmodel == 1", 3, "broken TOML", "KEY = VALUE"),
        ('mode = "ask\n', 1, "broken TOML", "texts stand in quotes"),
        ('allow = [\n"shell"\n', 2, "broken TOML", ""),
        ("mode = ask", 1, "broken TOML", "texts stand in quotes"),
        ('mode = "ask"\nmode = "plan"', 2, "broken TOML", ""),
        ("x" * 5000, 1, "broken TOML", ""),
        ("max_steps = " + "9" * 5000, 1, "broken TOML", ""),
        ("\n# x\nmodle = 'a'", 3, "no key 'modle'", "did you mean mode or model"),
        ('add_dirs = ["""/\\\nmodle = 1"""]\n"modle" = 1', 3, "no key 'modle'", "did you mean"),
        ("modlex = 1\nmode = 'ask'\n", 1, "no key 'modlex'", ""),
        ("[tools]\na = 1", 1, "no key 'tools'", "keys are model, "),
        ("mode = 'ask'\n[mcp.x]\n", 2, "no key 'mcp'", "keys are"),
        ("a.b = 1", 1, "no key 'a'", ""),
        ("mode = 'ask'\nmax_steps = '3'", 2, "max_steps: a whole number is expected, not the text '3'", "mend"),
        ("max_steps = true", 1, "not true or false", ""),
        ("max_steps = 0", 1, "from 1", ""),
        ("max_tokens = 1.5", 1, "not the number 1.5", ""),
        ("timeout_s = -1", 1, "greater than 0", ""),
        ("timeout_s = inf", 1, "greater than 0", ""),
        ("temperature = nan", 1, "from 0 to 2", ""),
        ("temperature = []", 1, "not a list", ""),
        ("mode = 'yolo'", 1, "one of plan, ask, edits, full is expected, not 'yolo'", ""),
        ("mode = 1", 1, "a text in quotes is expected, not the number 1", ""),
        ("model = ''", 1, "empty text", ""),
        ("model = {}", 1, "not a table", ""),
        ("model = 2024-01-01", 1, "not a date or time", ""),
        ("base_url = 'localhost'", 1, "begins with http://", ""),
        ("base_url = 'me:hush@host'", 1, "expected, not '…@host'", ""),
        ("api_key_env = 'sk-live-1'", 1, "never a key itself", ""),
        ("allow = 'shell'", 1, "a list of texts in brackets is expected, not the text 'shell'", ""),
        ("deny = [1]", 1, "a text in quotes is expected, not the number 1", ""),
        ("mode = 'ask'\ndeny = ['shel(rm)']", 2, "deny: 'shel(rm)': there is no tool 'shel'", ""),
        ("allow = ['shell(a | b)']", 1, "plain words without '|'", ""),
    ],
)
def test_a_faulty_file_is_refused_with_its_line(setting: Setting, text: str, line: int, said: str, hint: str) -> None:
    path = setting.person(text)
    message, given = setting.refused()
    assert message.startswith(f"{path}:{line}: ")
    assert said in message
    assert hint in given


def test_a_file_that_is_not_utf8_is_refused_with_its_line(setting: Setting) -> None:
    path = setting.person(b"mode = 'ask'\n# caf\xe9\n")
    assert setting.refused() == (f"{path}:2: this line is not UTF-8", "save the file as UTF-8")


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_circle(path: Path) -> None:
    path.symlink_to(path)


def make_big(path: Path) -> None:
    path.write_bytes(b"#" * (1 << 20) + b"\n")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Path.mkdir, "it is a folder, not a file"),
        (make_pipe, "it is no regular file"),
        (make_circle, "its links lead in a circle"),
        (make_big, "it is larger than 1024 KB"),
    ],
)
def test_a_config_that_is_no_proper_file_is_refused(setting: Setting, make: Callable[[Path], None], said: str) -> None:
    path = setting.home / ".config/pieria/config.toml"
    path.parent.mkdir(parents=True)
    make(path)
    assert setting.refused() == (f"{path}: {said}", "mend the file, or move it away")


@pytest.mark.unprivileged
def test_a_config_without_leave_to_read_is_refused(setting: Setting) -> None:
    if os.geteuid() == 0:
        return  # root may read everything; this runs a second time as an ordinary user
    path = setting.person("")
    path.chmod(0)
    assert setting.refused()[0] == f"{path}: there is no permission to read it"


def test_faults_of_flags_and_variables_name_them(setting: Setting) -> None:
    assert setting.refused({"mode": "x"})[0].startswith("--mode: one of plan, ask, edits, full")
    assert setting.refused({"timeout_s": 0.0})[0].startswith("--timeout: seconds greater than 0")
    assert setting.refused({"allow": ["shell("]})[0].startswith("--allow: 'shell('")
    assert setting.refused(PIERIA_MODE="x") == (
        "environment variable PIERIA_MODE: one of plan, ask, edits, full is expected, not 'x'",
        "change or unset PIERIA_MODE",
    )


def test_added_folders_must_exist_and_a_person_writes_them_in_full(setting: Setting) -> None:
    assert "'nope' is no folder" in setting.refused({"add_dirs": ["nope"]})[0]
    path = setting.person('add_dirs = ["notes"]')
    assert setting.refused()[0] == f"{path}: add_dirs: 'notes' is relative"


def test_a_byte_order_mark_and_windows_lines_are_fine(setting: Setting) -> None:
    setting.person(b"\xef\xbb\xbfmode = 'ask'\r\nmodel = 'm'\r\n")
    assert (setting.resolve().mode, setting.resolve().model) == ("ask", "m")


# --- homes ----------------------------------------------------------------------------------------------------


def test_without_a_home_there_is_no_personal_config_and_no_error(setting: Setting) -> None:
    setting.person('mode = "ask"')
    assert resolve({}, {}, str(setting.project)).mode == "edits"
    assert resolve({}, {"HOME": "relative", "XDG_CONFIG_HOME": "also"}, str(setting.project)).mode == "edits"
    assert resolve({}, {"XDG_CONFIG_HOME": f"{setting.home}/.config/"}, str(setting.project)).mode == "ask"


def test_the_key_is_named_never_held(setting: Setting) -> None:
    setting.person('api_key_env = "OTHER"')
    found = setting.resolve(PIERIA_API_KEY="hush-hush")
    assert (found.api_key_env, found.origins["api_key_env"]) == ("PIERIA_API_KEY", "environment")
    assert "hush-hush" not in repr(found)
    assert api_key(found, {"PIERIA_API_KEY": "hush-hush"}) == "hush-hush"
    assert api_key(setting.resolve(), {"OTHER": "else"}) == "else"
    with pytest.raises(UsageError, match="the variable OTHER is to hold the key"):
        api_key(setting.resolve(), {})
    assert api_key(Config(), {}) == ""


# --- trust ----------------------------------------------------------------------------------------------------


def test_an_untrusted_project_config_is_ignored_with_one_notice(setting: Setting) -> None:
    path = setting.own('mode = "full"\n')
    found = setting.resolve()
    assert (found.mode, found.trusted) == ("edits", False)
    assert found.notices == (f"{path} is ignored: this folder is not trusted (see it and trust it: pieria trust)",)


@pytest.mark.parametrize("text", ["broken = = 1", "nokey = 1", b"\xff\xfe"])
def test_faults_of_an_untrusted_project_config_stop_nobody(setting: Setting, text: str | bytes) -> None:
    setting.own(text)
    assert len(setting.resolve().notices) == 1
    assert setting.refused({"trust": True})[0]


def test_an_unreadable_project_config_stops_nobody_unless_it_is_wanted(setting: Setting) -> None:
    path = setting.project / ".pieria/config.toml"
    path.parent.mkdir()
    os.mkfifo(path)
    assert setting.resolve().notices == (f"{path}: it is no regular file; the project's config is ignored",)
    assert setting.refused({"trust": True})[0] == f"{path}: it is no regular file"


def test_trust_ends_when_the_content_changes(setting: Setting) -> None:
    path = setting.own('mode = "ask"\n')
    state = f"{setting.home}/.local/state/pieria"
    trust(str(setting.project), path.read_bytes(), state=state)
    found = setting.resolve()
    assert (found.mode, found.trusted, found.notices) == ("ask", True, ())
    setting.own('mode = "full"\n')
    found = setting.resolve()
    assert (found.mode, found.trusted) == ("edits", False)
    assert "it has changed since you trusted it" in found.notices[0]


def test_a_broken_trust_list_trusts_nothing_with_one_notice(setting: Setting) -> None:
    path = setting.own('mode = "full"\n')
    trust(str(setting.project), path.read_bytes(), state=f"{setting.home}/.local/state/pieria")
    write(setting.home / ".local/state/pieria/trust.json", "{")
    found = setting.resolve()
    assert (found.mode, len(found.notices)) == ("edits", 1)
    assert "the list of trusted folders" in found.notices[0]


def test_trust_for_this_run_is_not_remembered(setting: Setting) -> None:
    setting.own('mode = "ask"\n')
    assert setting.resolve({"trust": True}).mode == "ask"
    assert setting.resolve().mode == "edits"
    assert not (setting.home / ".local").exists()


def test_the_nearest_project_config_up_to_the_repository_is_taken(setting: Setting) -> None:
    setting.own('mode = "ask"\n')
    (setting.project / "a/b").mkdir(parents=True)
    assert setting.resolve({"trust": True}, below="a/b").mode == "ask"
    setting.own('mode = "plan"\n', below="a")
    assert setting.resolve({"trust": True}, below="a/b").mode == "plan"
    write(setting.project.parent / ".pieria/config.toml", 'mode = "full"\n')
    (setting.project / ".pieria/config.toml").unlink()
    assert setting.resolve({"trust": True}).mode == "edits", "above the repository nothing counts"


def test_outside_a_repository_only_the_folder_itself_counts(setting: Setting, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    (bare / "deep").mkdir(parents=True)
    write(bare / ".pieria/config.toml", 'mode = "ask"\n')
    assert resolve({"trust": True}, setting.environ, str(bare)).mode == "ask"
    assert resolve({"trust": True}, setting.environ, str(bare / "deep")).mode == "edits"
