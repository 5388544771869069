"""Rules `Tool(pattern)`: parsed strictly, allowing exactly what they say, denying more rather than less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pieria.core import stages
from pieria.core.values import Examined, TouchedPath, Value
from pieria.core.wildcards import MANY, as_pattern, overlap, path_matches, word_matches

TOOLS: dict[str, str] = {
    "shell": "words",
    "edit": "path",
    "write": "path",
    "read": "path",
    "grep": "path",
    "glob": "path",
    "todo": "",
}
"""A tool to what stands between its parentheses: words of a command, a path, or nothing."""
ALIASES = {"bash": "shell"}
_COVERS = {"edit": ("edit", "write"), "write": ("edit", "write"), "read": ("read", "grep")}
"""What a deny rule stops besides its own tool: another way to do the same to the same file."""
_SYNTAX = frozenset(";&|<>()$`'\"\\\n\r")


class Rule(Value, frozen=True, gc=False):
    """One rule. `text` as the person wrote it; neither words nor path: any call of the tool."""

    text: str
    tool: str
    words: tuple[str, ...] = ()
    path: str = ""


def parse_rule(text: str) -> Rule | str:
    """Return the rule, or what is wrong with its text and what was expected."""
    shown = text.strip()
    name, opened, rest = shown.partition("(")
    tool = name.strip().lower()
    tool = ALIASES.get(tool, tool)
    if tool not in TOOLS:
        return f"{shown!r}: there is no tool {name.strip()!r}; tools are {', '.join(TOOLS)}"
    if not opened:
        return Rule(shown, tool)
    if not rest.endswith(")"):
        return f"{shown!r}: the closing parenthesis is missing at the end, as in shell(pytest *)"
    pattern = rest[:-1].strip()
    if not pattern:
        return f"{shown!r}: nothing stands between the parentheses; {tool} alone means any call"
    match TOOLS[tool]:
        case "words":
            return _parse_words(shown, tool, pattern)
        case "path":
            return _parse_path(shown, tool, pattern)
        case _:
            return f"{shown!r}: {tool} takes no pattern; write {tool}"


def _parse_words(shown: str, tool: str, pattern: str) -> Rule | str:
    syntax = sorted(_SYNTAX.intersection(pattern))
    if syntax:
        return f"{shown!r}: a shell rule is plain words without {syntax[0]!r}; one rule for each command"
    return Rule(shown, tool, words=tuple(pattern.split()))


def _parse_path(shown: str, tool: str, pattern: str) -> Rule | str:
    if pattern.startswith("~"):
        return f"{shown!r}: a path is relative to the root or absolute; '~' has no meaning here"
    names = pattern.split("/")
    if ".." in names:
        return f"{shown!r}: '..' is not allowed in a path; write the absolute path"
    if pattern.endswith("/"):
        names[-1] = "**"
    kept = "/".join(name for name in names if name not in ("", "."))
    if not kept:
        return f"{shown!r}: no name is left in the path; {tool}(**) means everything inside the root"
    return Rule(shown, tool, path="/" + kept if pattern.startswith("/") else kept)


# --- allow --------------------------------------------------------------------------------------------------


def allows(rule: Rule, tool: str, facts: Examined, *, root: str) -> bool:
    """Whether an allow rule covers a call: each word and path of it, and nothing that can't be seen."""
    if rule.tool != ALIASES.get(tool.lower(), tool.lower()):
        return False
    if facts.access == "shell":
        return _allows_command(rule, facts)
    if not all(rule_names(rule, path) for path in facts.paths if path.secret):
        return False
    places = {path.real for path in facts.paths} | {change.path for change in facts.changes}
    return not rule.path or (bool(places) and all(_allows_path(rule.path, place, root=root) for place in places))


def rule_names(rule: Rule, path: TouchedPath) -> bool:
    """Whether a rule gives part of a file's name: leave to read a secret must be said, not implied."""
    last = rule.path.rsplit("/", 1)[-1]
    return last.strip("*?") != "" and word_matches(last, path.real.rsplit("/", 1)[-1])


def _allows_command(rule: Rule, facts: Examined) -> bool:
    words = facts.words
    if not words or "=" in words[0] or not all(path.inside for path in facts.paths):
        return False
    if isinstance(facts.command, str) and not stages.is_plain(facts.command, words):
        return False
    wanted = rule.words
    if not wanted or wanted == ("*",):
        return True
    if wanted[-1] == "*":
        wanted = wanted[:-1]
        words = words[: len(wanted)]
    return len(words) == len(wanted) and all(map(word_matches, wanted, words))


def _allows_path(pattern: str, real: str, *, root: str) -> bool:
    if pattern.startswith("/"):
        return path_matches(pattern, real)
    inside = _below(real, root)
    return inside is not None and path_matches(pattern, inside)


def _below(real: str, root: str) -> str | None:
    """Return a path relative to the root, None when it is outside or the root is not known."""
    if not root:
        return None
    if real == root:
        return ""
    base = root.rstrip("/") + "/"
    return real[len(base) :] if real.startswith(base) else None


# --- deny ---------------------------------------------------------------------------------------------------


def denies(rule: Rule, tool: str, facts: Examined, *, root: str) -> bool:
    """Whether a deny rule stops a call: any word or path of it that may be meant, in any spelling we know."""
    name = ALIASES.get(tool.lower(), tool.lower())
    if rule.tool == "shell" and facts.access == "shell":
        return not rule.words or _denies_command(rule.words, facts)
    if name not in _COVERS.get(rule.tool, (rule.tool,)):
        return False
    return not rule.path or any(_denies_path(rule.path, path, root=root) for path in _touched(facts))


def _touched(facts: Examined) -> Iterator[TouchedPath]:
    yield from facts.paths
    yield from (TouchedPath(given=change.path, real=change.path, inside=False) for change in facts.changes)


def _denies_path(pattern: str, path: TouchedPath, *, root: str) -> bool:
    """Small letters on both sides, since some disks don't tell them apart; what lies below is meant too."""
    patterns = [pattern.lower(), pattern.lower() + "/**"]
    inside = _below(path.real, root)
    if pattern.startswith("/"):
        candidates = [path.real, path.given if path.given.startswith("/") else path.real]
    else:
        candidates = [path.given, path.real if inside is None else inside]
        if inside is None:
            patterns = [f"**/{each}" for each in patterns]
    found = [candidate.lower().removeprefix("./") for candidate in candidates]
    return any(path_matches(each, candidate) for each in patterns for candidate in found)


def _denies_command(wanted: Sequence[str], facts: Examined) -> bool:
    while len(wanted) > 1 and wanted[-1] == "*":
        wanted = wanted[:-1]
    wanted = [word.lower() for word in wanted]
    if isinstance(facts.command, str):
        seen = list(stages.stages(facts.command))
    elif facts.words is None:
        return True  # too long to be in the record: what can't be read can't be ruled out
    else:
        seen = [found for word in facts.words for found in stages.stages(word)]
    if facts.words:
        seen.append(stages.Stage(facts.words, certain=True))
    return any(
        _denies_at(wanted, stage.words[at:], certain=certain) for stage in seen for at, certain in stages.starts(stage)
    )


def _denies_at(wanted: Sequence[str], words: Sequence[str], *, certain: bool) -> bool:
    program = _spelt(stages.program(words[0]))
    if program.strip(MANY) == "":
        return certain  # the shell alone knows what this runs: it may be anything
    if not overlap(as_pattern(stages.program(wanted[0])), program):
        return False
    return _has_options(wanted[1:], words[1:]) and _has_operands(wanted[1:], words[1:])


def _spelt(word: str) -> str:
    return word.replace(stages.EXPANDED, MANY)


def _has_options(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether all wanted options are there, in any order, short ones together or apart."""
    given = [word.lower() for word in words if word.startswith("-") or stages.EXPANDED in word]
    letters = {char for word in given if not word.startswith("--") for char in word}
    for option in wanted:
        if not _is_option(option):
            continue
        short = not option.startswith("--") and letters.issuperset(option)
        if not short and not any(word.split("=", 1)[0] in (option, stages.EXPANDED) for word in given):
            return False
    return True


def _has_operands(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the wanted words stand first, once options and what may be their values are left out."""
    need = [as_pattern(word) for word in wanted if not _is_option(word)]
    after_option = False
    for word in words:
        if not need:
            return True
        found = _spelt(word.lower())
        if word.startswith("-"):
            after_option = True
        elif overlap(need[0], found) and not (after_option and found.strip(MANY) == ""):
            need.pop(0)
            after_option = False
        elif after_option:
            after_option = False
        else:
            return False
    return not need


def _is_option(word: str) -> bool:
    return word.startswith("-") and word.strip("-") != ""
