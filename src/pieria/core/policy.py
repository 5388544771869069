"""Rules on one examined call: allow, ask or deny. Deny beats ask beats allow, whatever the rules' order.

Core sees no disk: a ruling is a function of the examined facts and the recorded settings alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pieria.core.events.session import SettingsApplied
from pieria.core.rules import Rule, allows, denies, parse_rule
from pieria.core.values import Examined, TouchedPath, Value

__all__ = ["DEFAULT_MODE", "MODES", "Rule", "Ruled", "guidance", "parse_rule", "rule"]

MODES = ("plan", "ask", "edits", "full")
DEFAULT_MODE = "edits"


class Ruled(Value, frozen=True, gc=False):
    """A ruling. `by`: whether a rule or the mode decided; `reason`: which one, for people and the record."""

    ruling: Literal["allow", "ask", "deny"]
    by: Literal["mode", "rule"]
    reason: str


def rule(tool: str, facts: Examined, settings: SettingsApplied, *, root: str = "") -> Ruled:
    """Rule on a call. `root` is the agent's: without it, relative paths in allow rules cover nothing."""
    for text in settings.deny:
        parsed = parse_rule(text)
        if isinstance(parsed, str) or denies(parsed, tool, facts, root=root):
            return Ruled("deny", "rule", f"rule deny {text}")
    mode = settings.mode
    if facts.access == "note":
        return _by_mode("allow", mode, "touches neither files nor commands")
    if facts.access in ("read", "edit") and any(map(_is_in_git, _places(facts))):
        return _by_mode("deny", mode, ".git is closed to file tools")
    if facts.access != "read" and mode == "plan":
        return _by_mode("deny", mode, "read only")
    if facts.secrets and mode != "full":
        return _by_mode("ask", mode, f"uses a secret: {_some(facts.secrets)}")
    if facts.access == "read":
        ruled = _rule_read(facts, mode)
    elif facts.access == "edit":
        ruled = _rule_edit(facts, mode)
    else:
        ruled = _rule_shell(facts, settings)
    if ruled.ruling == "ask" and not (facts.access == "edit" and _guarded(facts)):
        for text in settings.allow:
            parsed = parse_rule(text)
            if isinstance(parsed, Rule) and allows(parsed, tool, facts, root=root):
                return Ruled("allow", "rule", f"rule allow {text}")
    return ruled


def guidance(ruled: Ruled, facts: Examined) -> str:
    """What the model is told when a call is denied: what is not allowed, and what to do instead."""
    if ruled.by == "rule":
        same = "command in another spelling" if facts.access == "shell" else "path with another tool"
        instead = f"The same {same} is not allowed either. Go on without it, or say what is needed and why."
    elif any(map(_is_in_git, _places(facts))):
        instead = "Leave git's own files alone; where the shell is allowed, ask git itself."
    elif facts.access == "shell":
        instead = "Use read, grep and glob to find out more, and describe what you would run."
    else:
        instead = "Describe the change that you would make instead of making it."
    return f"Not allowed ({ruled.reason}). {instead}"


def _by_mode(ruling: Literal["allow", "ask", "deny"], mode: str, why: str) -> Ruled:
    return Ruled(ruling, "mode", f"mode {mode}: {why}")


def _rule_read(facts: Examined, mode: str) -> Ruled:
    if mode == "full":
        return _by_mode("allow", mode, "everything may be read")
    if secret := [path.real for path in facts.paths if path.secret]:
        return _by_mode("ask", mode, f"reads a file that may hold secrets: {_some(secret)}")
    if outside := [path.real for path in facts.paths if not path.inside]:
        return _by_mode("ask", mode, f"reads outside the workspace: {_some(outside)}")
    return _by_mode("allow", mode, "reads inside the workspace")


def _rule_edit(facts: Examined, mode: str) -> Ruled:
    if guarded := _guarded(facts):
        return _by_mode("ask", mode, f"changes what agents are told or may do: {_some(guarded)}")
    if mode == "full":
        return _by_mode("allow", mode, "everything may be changed")
    outside = [path.real for path in _places(facts) if not path.inside]
    if outside or not facts.paths:
        return _by_mode("ask", mode, f"changes files outside the workspace: {_some(outside)}")
    if mode == "edits":
        return _by_mode("allow", mode, "changes files inside the workspace")
    return _by_mode("ask", mode, "every change is asked")


def _rule_shell(facts: Examined, settings: SettingsApplied) -> Ruled:
    if settings.mode == "full":
        return _by_mode("allow", settings.mode, "commands run uncontained")
    if facts.words is None:
        return _by_mode("ask", settings.mode, "a command with shell syntax, which no rule can allow")
    return _by_mode("ask", settings.mode, "no rule allows this command")


def _guarded(facts: Examined) -> list[str]:
    return [path.real for path in facts.paths if path.guarded]


def _places(facts: Examined) -> list[TouchedPath]:
    """All paths of a call; a change of a file that the call did not name counts as outside."""
    known = {path.real for path in facts.paths}
    unnamed = [change.path for change in facts.changes if change.path not in known]
    return [*facts.paths, *(TouchedPath(given=path, real=path, inside=False) for path in unnamed)]


def _is_in_git(path: TouchedPath) -> bool:
    return any(name.lower() == ".git" for place in (path.real, path.given) for name in place.split("/"))


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
