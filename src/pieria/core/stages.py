"""Takes a shell command apart for rules, without understanding it: it may see too many commands, not too few.

Deny rules look at every place where a program might start. This is a convenience; containment is what holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from pieria.core.values import Value
from pieria.core.wildcards import MANY, ONE

EXPANDED = "\ue002"
"""Stands in a word for what only the shell knows: a variable, a substitution, an expanded brace."""

_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_CRUDE = str.maketrans(dict.fromkeys(";&|<>()`'\"\\\r\n", "\n"))
_NESTED = 3

# Programs that run another one, and words of the shell before which a command may stand.
WRAPPERS = frozenset({
    "sudo", "doas", "su", "env", "nohup", "time", "timeout", "nice", "ionice", "chrt", "taskset",
    "setsid", "stdbuf", "command", "builtin", "exec", "eval", "xargs", "parallel", "watch", "find", "fd",
    "fdfind", "bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "busybox", "toybox", "ssh", "flock",
    "script", "strace", "ltrace", "unshare", "nsenter", "chroot", "bwrap", "systemd-run", "trap", "if",
    "then", "elif", "else", "while", "until", "do", "!", "{", "function", "coproc",
})  # fmt: skip


class Stage(Value, frozen=True, gc=False):
    """One command of a line. `certain`: a program surely starts here; a hidden one may be any program."""

    words: tuple[str, ...]
    certain: bool


def stages(command: str) -> tuple[Stage, ...]:
    """Return every stage that can be seen in a command, in several readings: too many on purpose."""
    return (*_read(command, _NESTED), *_crude(command))


def is_plain(command: str, words: tuple[str, ...]) -> bool:
    """Whether a second, independent reading agrees that a command is one program with exactly these words."""
    lexer = _Lexer(command.strip(" \t\n"))
    lexer.read()
    if not lexer.plain or len(lexer.found) != 1 or len(lexer.found[0].words) != len(words):
        return False
    return all(map(_same, lexer.found[0].words, words))


def starts(stage: Stage) -> Iterator[tuple[int, bool]]:
    """Yield each place in a stage where a program may start, and whether it is certain that one does."""
    at = 0
    wrapped = False
    while at < len(stage.words):
        if _is_prefix(stage.words[at]):
            at += 1
            continue
        yield at, stage.certain
        if program(stage.words[at]) not in WRAPPERS:
            break
        wrapped = True
        at += 1
    if wrapped:
        yield from ((later, False) for later in range(at + 1, len(stage.words)))


def program(word: str) -> str:
    """Return the program that a word names: no folder, small letters."""
    return word.rsplit("/", 1)[-1].lower()


def _same(read: str, word: str) -> bool:
    if EXPANDED in read:
        return False
    return read.replace(MANY, "*").replace(ONE, "?") == word


def _is_prefix(word: str) -> bool:
    """Assignments, and what is left of a redirect such as `2>`."""
    name = word.split("=", 1)[0].split("[", 1)[0].removesuffix("+")
    assigned = "=" in word and name != "" and _NAME_CHARS.issuperset(name)
    return assigned or word.isdigit()


def _read(command: str, depth: int, *, certain: bool = True) -> Iterator[Stage]:
    lexer = _Lexer(command, certain=certain)
    lexer.read()
    for stage in lexer.found:
        yield stage
        if depth:
            for word in stage.words:
                if len(word.split()) > 1:  # a quoted script, or words that look like one
                    yield from _read(word, depth - 1, certain=False)


def _crude(command: str) -> Iterator[Stage]:
    """Cut at every operator and every quote, whatever they mean."""
    for line in command.translate(_CRUDE).split("\n"):
        if words := tuple(line.split()):
            yield Stage(words, certain=False)


class _Lexer:
    """Reads a command once, from left to right, as the shell would read quotes, escapes and operators."""

    def __init__(self, text: str, *, certain: bool = True) -> None:
        self.text = text
        self.found: list[Stage] = []
        self.plain = True
        self._at = 0
        self._words: list[str] = []
        self._word: str | None = None
        self._first_certain = certain
        self._certain = certain
        self._drop_next = False
        self._in_backticks = False

    def read(self) -> None:
        """Fill `found`. `plain` stays True as long as there is no operator, expansion or comment."""
        while self._at < len(self.text):
            char = self.text[self._at]
            self._at += 1
            self._take(char)
        self._end_stage(certain=False)

    def _take(self, char: str) -> None:
        match char:
            case "\\":
                self._escape()
            case "'":
                self._add(self._until("'"))
            case '"':
                self._double_quoted()
            case "$":
                self._expand()
            case "`":
                self._backtick()
            case ";" | "&" | "|" | "\n" | "(" | ")":
                self.plain = False
                if char in "&|" and self.text.startswith(char, self._at):
                    self._at += 1
                arithmetic = char == "(" and self.text.startswith("((", max(self._at - 2, 0))
                self._end_stage(certain=self._first_certain and char != ")" and not arithmetic)
            case "<" | ">":
                self._redirect()
            case " " | "\t" | "\r" | "\v" | "\f":
                self._end_word()
            case "#" if self._word is None:
                self.plain = False
                while self._at < len(self.text) and self.text[self._at] != "\n":
                    self._at += 1
            case "{" | "[" | "*" | "?":
                self._glob(char)
            case _:
                self._add(char)

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _until(self, end: str) -> str:
        """Take the text up to the next `end`, or all the rest."""
        stop = self.text.find(end, self._at)
        stop = len(self.text) if stop < 0 else stop
        taken = self.text[self._at : stop]
        self._at = stop + 1
        return taken

    def _escape(self) -> None:
        char = self.text[self._at : self._at + 1]
        self._at += 1
        if char in ("\n", ""):
            self.plain = False
        else:
            self._add(char)

    def _double_quoted(self) -> None:
        self._add("")
        while self._at < len(self.text):
            char = self.text[self._at]
            self._at += 1
            if char == '"':
                return
            if char == "\\" and self.text[self._at : self._at + 1] in ("$", "`", '"', "\\", "\n"):
                self._escape()
            elif char in "$`":
                self.plain = False
                self._add(EXPANDED)
                self._skip_name()
            else:
                self._add(char)

    def _expand(self) -> None:
        following = self.text[self._at : self._at + 1]
        if following == '"':
            return
        self.plain = False
        self._add(EXPANDED)
        if following == "'":
            self._at += 1
            while (char := self.text[self._at : self._at + 1]) not in ("'", ""):
                self._at += 2 if char == "\\" else 1
            self._at += 1
        elif following == "{":
            self._until("}")
        elif following != "(":
            self._skip_name()

    def _skip_name(self) -> None:
        start = self._at
        while self._at < len(self.text) and self.text[self._at] in _NAME_CHARS:
            self._at += 1
        if self._at == start and self.text[self._at : self._at + 1] in tuple("@*#?$!-"):
            self._at += 1

    def _backtick(self) -> None:
        self.plain = False
        if not self._in_backticks:
            self._add(EXPANDED)
        self._in_backticks = not self._in_backticks
        self._end_stage(certain=self._in_backticks and self._first_certain)

    def _redirect(self) -> None:
        self.plain = False
        self._end_word()
        while self.text[self._at : self._at + 1] in ("<", ">", "&", "|"):
            self._at += 1
        self._drop_next = True

    def _glob(self, char: str) -> None:
        if char == "*":
            self._add(MANY)
        elif char == "?":
            self._add(ONE)
        else:
            end = self.text.find("}" if char == "{" else "]", self._at)
            inside = self.text[self._at : end] if end > 0 else " "
            if inside.split() != [inside] or (char == "{" and "," not in inside and ".." not in inside):
                self._add(char)
                return
            self.plain = self.plain and char == "["
            self._add(EXPANDED if char == "{" else ONE)
            self._at = end + 1

    def _end_word(self) -> None:
        if self._word is None:
            return
        if not self._drop_next:
            self._words.append(self._word)
        self._word = None
        self._drop_next = False

    def _end_stage(self, *, certain: bool) -> None:
        self._end_word()
        if self._words:
            self.found.append(Stage(tuple(self._words), self._certain))
        in_test = self._words[:1] == ["[["] and "]]" not in self._words
        self._words = []
        self._certain = certain and not in_test
        self._drop_next = False
