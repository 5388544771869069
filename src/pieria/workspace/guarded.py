"""Which paths policy must know of: the agent's own rules, git's internals, and names that hold secrets.

Names are compared as the laxest file system would: case, ignorable characters, trailing dots and blanks aside.
"""

from __future__ import annotations

import os
import stat

FOLDERS = {".git", ".pieria", ".agents", ".claude", ".husky", ".githooks", ".git-hooks"}
FILES = {"agents.md", "claude.md", "agents.override.md", "claude.local.md"}
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "AGENTS.override.md", "CLAUDE.local.md")
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
    return any(name in FOLDERS for name in names) or bool(names and names[-1] in FILES)


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
    for name in (*INSTRUCTIONS, ".git", ".pieria", ".agents", ".claude"):
        place = os.path.join(root, name)
        if os.path.islink(place) and within(real, os.path.realpath(place)):
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
    try:
        status = os.lstat(real)
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
        return False
    folder = os.path.dirname(real)
    folders = [root]
    while within(folder, root) and folder != root:
        folders.append(folder)
        folder = os.path.dirname(folder)
    places = [os.path.join(folder, name) for folder in folders for name in INSTRUCTIONS]
    trees = [os.path.join(folder, name) for folder in folders for name in sorted(FOLDERS)]
    wanted = (status.st_dev, status.st_ino)
    return any(_identity(place) == wanted for place in places) or _below(wanted, [*trees, *own_folders])


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
