"""Which paths policy must know of: the agent's own rules, git's internals, and names that hold secrets.

Names are compared as the laxest file system would: case, ignorable characters, trailing dots and blanks aside.
"""

from __future__ import annotations

import os
import stat

FOLDERS = {".git", ".pieria", ".agents", ".claude", ".cursor", ".husky", ".githooks", ".git-hooks"}
RULES = (
    *("AGENTS.md", "CLAUDE.md", "AGENTS.override.md", "CLAUDE.local.md", "GEMINI.md", ".cursorrules"),
    *(".envrc", ".mcp.json", ".pre-commit-config.yaml", os.path.join(".vscode", "tasks.json")),
)
"""What agents are told, and what other programs run by themselves in a folder that holds it."""
_RULES = {rule.casefold() for rule in RULES}
IGNORABLE = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF], None)
ENTRIES = 4000

SECRET = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_rsa*", "id_dsa*"),
    *("id_ecdsa*", "id_ed25519*", "credentials", "credentials.*", ".credentials*", ".netrc", "_netrc", ".pgpass"),
    *(".git-credentials", ".npmrc", ".pypirc", ".htpasswd", "secrets.*", "*.secret", "service-account*.json"),
)
NOT_SECRET = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub", "secrets.py", "credentials.py")
SECRET_FOLDERS = {".ssh", ".gnupg", ".aws", ".kube", ".docker", ".azure", ".gcloud"}


def plain(name: str) -> str:
    """Return a name as the laxest file system compares it."""
    folded = name.translate(IGNORABLE).casefold().partition(":")[0].rstrip(". ") or name
    return ".git" if folded == "git~1" else folded


def parts(path: str) -> list[str]:
    """Return the comparable names along a path."""
    return [plain(part) for part in path.split("/") if part]


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it, by exact names."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_git_internal(real: str) -> bool:
    """Whether a real path is git's own: a `.git` folder or file, or anything below one. Such paths are refused."""
    return ".git" in parts(real)


def named_guarded(path: str, root: str) -> bool:
    """Whether a name along the path says that it holds rules; names above the root do not count."""
    names = parts(path[len(root) :] if within(path, root) else path)
    return any(name in FOLDERS for name in names) or any("/".join(names[-count:]) in _RULES for count in (1, 2))


def is_secret(path: str) -> bool:
    """Whether a path's name is one under which secrets are kept."""
    from fnmatch import fnmatchcase

    names = [part.casefold() for part in path.split("/") if part]
    if not names or any(fnmatchcase(names[-1], pattern) for pattern in NOT_SECRET):
        return False
    return any(name in SECRET_FOLDERS for name in names[:-1]) or any(
        fnmatchcase(names[-1], pattern) for pattern in SECRET
    )


def led_to(real: str, root: str) -> bool:
    """Whether a guarded name of the root is a link that leads to this path, or git's hooks were put there."""
    for name in (*RULES, ".git", ".pieria", ".agents", ".claude", ".cursor"):
        place = os.path.join(root, name)
        if (os.path.islink(place) or os.path.islink(os.path.dirname(place))) and within(real, os.path.realpath(place)):
            return True
    hooks = _hooks_path(root)
    return bool(hooks) and within(real, os.path.realpath(os.path.join(root, hooks)))


def _hooks_path(root: str) -> str:
    """Read core.hooksPath from the repository's own config; "" if there is none."""
    try:
        with open(os.path.join(root, ".git", "config"), encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                name, _, value = line.partition("=")
                if name.strip().casefold() == "hookspath":
                    return os.path.expanduser(value.strip().strip('"'))
    except OSError:
        return ""
    return ""


def in_bare_repository(real: str, root: str) -> bool:
    """Whether a folder above the path looks like a git folder, whatever its name."""
    folder = os.path.dirname(real)
    while len(folder) > 1 and folder != root:
        if os.path.isfile(os.path.join(folder, "HEAD")) and (
            os.path.isdir(os.path.join(folder, "objects")) or os.path.isfile(os.path.join(folder, "commondir"))
        ):
            return True
        folder = os.path.dirname(folder)
    return False


def is_hard_link_of_rules(real: str, root: str, own_folders: tuple[str, ...]) -> bool:
    """Whether the file is also known by a guarded name, found by inode; asked only of files with several names."""
    wanted = _of_several_names(real)
    if wanted is None:
        return False
    folders = _up_to(root, real)
    places = [os.path.join(folder, name) for folder in folders for name in RULES]
    trees = [os.path.join(folder, name) for folder in folders for name in sorted(FOLDERS)]
    return any(_identity(place) == wanted for place in places) or _below(wanted, [*trees, *own_folders])


def name_in_git(real: str, root: str) -> str:
    """Return the name in `.git` by which git takes this file as its config or a hook; "" if it does not."""
    wanted = _of_several_names(real)
    if wanted is None or is_git_internal(real):
        return ""
    for folder in _up_to(root, real):
        git = os.path.join(folder, ".git")
        for name in (os.path.join(git, "config"), os.path.join(git, "config.worktree"), *_files_in(f"{git}/hooks")):
            if _identity(name) == wanted:
                return name
    return ""


def _files_in(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _of_several_names(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    several = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
    return (status.st_dev, status.st_ino) if several else None


def _up_to(root: str, path: str) -> list[str]:
    """Return the root and, of a path inside it, every folder on the way."""
    folders = [root]
    folder = os.path.dirname(path)
    while within(folder, root) and folder != root:
        folders.append(folder)
        folder = os.path.dirname(folder)
    return folders


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _below(wanted: tuple[int, int], trees: list[str]) -> bool:
    left = ENTRIES
    for tree in trees:
        for folder, folders, names in os.walk(tree):
            folders[:] = [name for name in folders if name != "objects"]
            left -= len(names) + 1
            if any(_identity(os.path.join(folder, name)) == wanted for name in names):
                return True
            if left < 0:
                return False
    return False
