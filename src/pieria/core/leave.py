"""What agents may do unasked, in words for a model: told at the start, and again whenever it changes."""

from __future__ import annotations

from pieria.core.events.session import SettingsApplied

_MODES = {
    "plan": "reading only; edits and commands are refused. Answer with a plan.",
    "ask": "reading is free; each edit and each command needs the person's yes.",
    "edits": "edits in the working folder are free; commands need a rule or the person's yes.",
    "full": "edits and commands are free. Nothing is sandboxed: be careful with what can't be undone.",
}
_PLAIN = "A command passes by a rule only as one plain command: no pipes, &&, redirects, variables, globs or cd."


def leave(settings: SettingsApplied) -> str:
    """Word the mode and the rules."""
    lines = [f"Leave: {_MODES.get(settings.mode, settings.mode)}"]
    if settings.allow and settings.mode in ("ask", "edits"):
        lines.append(f"Allowed by rule: {', '.join(settings.allow)}. {_PLAIN}")
    if settings.deny:
        lines.append(f"Denied by rule: {', '.join(settings.deny)}.")
    if settings.headless and settings.mode in ("ask", "edits"):
        lines.append("Nobody is at the terminal: a call that needs a yes ends this run until it is answered.")
    return " ".join(lines)
