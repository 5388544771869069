"""Real places of paths, and what policy is told of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pieria.core.ports import FileProblem, Place
from pieria.core.values import TouchedPath
from pieria.workspace.files import DiskFiles
from pieria.workspace.guarded import is_git_internal, is_secret


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = Path(os.path.realpath(tmp_path)) / "project"
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.py").write_text("a")
    return place


def touched(given: str, root: Path, *, add_dirs: tuple[str, ...] = (), own: tuple[str, ...] = ()) -> TouchedPath:
    return DiskFiles(own_folders=own).touch(given, Place(str(root), add_dirs))


@pytest.mark.parametrize("given", ["src/a.py", "./src/../src//a.py", "src/new/../a.py", "{root}/src/a.py", "way/a.py"])
def test_every_form_of_a_path_has_one_real_place(root: Path, given: str) -> None:
    (root / "way").symlink_to("src")
    given = given.format(root=root)
    assert touched(given, root) == TouchedPath(given, str(root / "src" / "a.py"), inside=True)


def test_a_missing_tail_is_allowed(root: Path) -> None:
    assert touched("no/such/b.py", root).real == str(root / "no" / "such" / "b.py")
    assert touched("", root).real == touched(".", root).real == str(root)


@pytest.mark.parametrize("given", ["../x", "/etc/passwd", "out/passwd", "out", "src/../../x", "gone"])
def test_what_leads_outside_is_outside(root: Path, given: str) -> None:
    (root / "out").symlink_to("/etc")
    (root / "gone").symlink_to("../not/there")
    assert not touched(given, root).inside


def test_a_name_that_only_begins_like_the_root_is_outside(root: Path) -> None:
    assert not touched(f"{root}-other/a", root).inside
    assert touched("/etc/passwd", Path("/")).inside


def test_proc_leads_where_it_leads(root: Path) -> None:
    if not Path("/proc/self").exists():
        return
    top = "root"
    given = f"/proc/self/{top}/etc/passwd"
    assert touched(given, root).real == os.path.realpath("/etc/passwd")


def test_added_folders_are_inside_by_their_real_place(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other")
    assert touched(f"{tmp_path}/other/a", root, add_dirs=(f"{tmp_path}/link",)).inside


def test_a_root_given_by_a_link_is_its_real_place(root: Path) -> None:
    (root.parent / "alias").symlink_to("project")
    assert touched("src/a.py", root.parent / "alias") == TouchedPath("src/a.py", str(root / "src/a.py"), inside=True)


@pytest.mark.parametrize("given", ["a\0b", "x" * 300, "y/" * 3000, "\ud800"])
def test_what_no_file_can_be_called_is_refused(root: Path, given: str) -> None:
    with pytest.raises(FileProblem) as caught:
        touched(given, root)
    assert caught.value.kind == "refused"


def test_odd_names_and_circles_have_a_place(root: Path) -> None:
    assert touched("caf\udce9", root).real == str(root / "caf\udce9")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    assert touched("one/x", root).inside


RULES = [
    *(
        ".git",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/config",
        ".git./config",
        ".g\u200cit/config",
        "git~1/x",
    ),
    *(".pieria/config.toml", ".agents/memory/a.md", ".claude/settings.json", "AGENTS.md", "src/agents.MD", "CLAUDE.md"),
    *(".husky/pre-commit", ".githooks/x", "src/../.git/index", "AGENTS.md.", ".Agents"),
    *(".envrc", "sub/.envrc", ".cursorrules", ".cursor/rules/a.mdc", ".mcp.json", "GEMINI.md", "src/Gemini.MD"),
    *(".pre-commit-config.yaml", ".vscode/tasks.json", "sub/.VSCode/tasks.json"),
]


@pytest.mark.parametrize("given", RULES)
def test_the_agents_own_rules_are_guarded_whatever_the_spelling(root: Path, given: str) -> None:
    assert touched(given, root).guarded


@pytest.mark.parametrize(
    "given",
    [
        *("src/a.py", ".gitignore", ".github/x.yml", "docs/AGENTS.md.txt", "src/hooks/use.ts"),
        *(".vscode/settings.json", "tasks.json", "tasks.json/.vscode", "cursor/a", "mcp.json", ".envrc.txt"),
    ],
)
def test_ordinary_files_are_not_guarded(root: Path, given: str) -> None:
    assert not touched(given, root).guarded


def test_links_to_and_from_rules_are_guarded(root: Path) -> None:
    (root / ".git").mkdir()
    (root / "door").symlink_to(".git")
    (root / "docs").mkdir()
    (root / "docs" / "rules.md").write_text("rules")
    (root / "AGENTS.md").symlink_to("docs/rules.md")
    (root / "CLAUDE.md").symlink_to("docs/later.md")
    (root / ".claude").symlink_to("settings")
    for given in ("door/config", "AGENTS.md", "docs/rules.md", "docs/later.md", "settings/x.json"):
        assert touched(given, root).guarded, given
    assert not touched("docs/other.md", root).guarded
    (root / "src" / "CLAUDE.md").symlink_to("../docs/other.md")
    assert touched("src/CLAUDE.md", root).guarded


@pytest.mark.parametrize("name", ["AGENTS.md", ".git/hooks/pre-commit", ".agents/skills/x/SKILL.md", "src/CLAUDE.md"])
def test_another_name_of_a_guarded_file_is_guarded(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("x")
    os.link(root / name, root / "src" / "innocent.txt")
    os.link(root / "src" / "a.py", root / "src" / "b.py")
    assert touched("src/innocent.txt", root).guarded
    assert not touched("src/b.py", root).guarded


def test_a_file_that_other_programs_run_is_guarded_behind_links_too(root: Path) -> None:
    (root / ".vscode").symlink_to("settings")
    (root / ".envrc").symlink_to("src/environment")
    (root / ".mcp.json").write_text("{}")
    os.link(root / ".mcp.json", root / "src" / "servers.json")
    for given in ("settings/tasks.json", "src/environment", "src/servers.json"):
        assert touched(given, root).guarded, given
    assert not touched("settings/other.json", root).guarded


@pytest.mark.parametrize("name", [".git/config", ".git/hooks/pre-commit"])
def test_a_hard_link_of_gits_config_or_hook_is_git_internal(root: Path, name: str) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / name).write_text("x")
    os.link(root / name, root / "src" / "innocent.txt")
    os.link(root / "src" / "a.py", root / "src" / "b.py")
    found = touched("src/innocent.txt", root)
    assert (found.real, found.given, found.guarded) == (str(root / name), "src/innocent.txt", True)
    assert is_git_internal(found.real)
    assert touched("src/b.py", root).real == str(root / "src" / "b.py")


def test_a_folder_that_git_takes_hooks_from_is_guarded(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n\tbare = false\n\thooksPath = tools/hooks\n")
    assert touched("tools/hooks/pre-commit", root).guarded
    assert not touched("tools/other", root).guarded


def test_a_git_folder_of_another_name_is_guarded(root: Path) -> None:
    bare = root / "mirror"
    (bare / "objects").mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    assert touched("mirror/hooks/post-update", root).guarded


def test_the_programs_own_folders_are_guarded_but_not_a_worktree_in_them(root: Path, tmp_path: Path) -> None:
    own = Path(os.path.realpath(tmp_path)) / "state" / "pieria"
    (own / "worktrees" / "w1").mkdir(parents=True)
    assert touched(f"{own}/config.toml", root, own=(str(own),)).guarded
    assert touched(f"{str(own).upper()}/config.toml", root, own=(str(own),)).guarded
    worktree = own / "worktrees" / "w1"
    assert not touched("a.py", worktree, own=(str(own),)).guarded
    assert touched("../w2/a.py", worktree, own=(str(own),)).guarded


def test_rules_above_the_root_do_not_guard_what_is_below_it(tmp_path: Path) -> None:
    worktree = tmp_path / ".pieria" / "worktrees" / "w1"
    worktree.mkdir(parents=True)
    assert not touched("a.py", worktree).guarded
    assert touched("AGENTS.md", worktree).guarded


def test_gits_own_paths_can_be_told_from_other_guarded_ones(root: Path) -> None:
    for given in (".git", ".git/config", "sub/.GIT/x", "sub/.git"):
        assert is_git_internal(touched(given, root).real)
    for given in ("AGENTS.md", ".gitignore", "a.git/x", ".agents/x"):
        assert not is_git_internal(touched(given, root).real)


SECRETS = [
    ".env",
    ".env.local",
    "x/server.PEM",
    "id_rsa",
    "id_ed25519",
    "credentials",
    ".ssh/config",
    ".netrc",
    "a.key",
]


@pytest.mark.parametrize("given", SECRETS)
def test_names_of_secrets_are_told(root: Path, given: str) -> None:
    assert touched(given, root).secret
    (root / "plain.txt").symlink_to(given)
    assert touched("plain.txt", root).secret


@pytest.mark.parametrize("name", [".env.example", "id_rsa.pub", "environment.py", "src/credentials.py", "keyboard.py"])
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret(f"/x/{name}")
