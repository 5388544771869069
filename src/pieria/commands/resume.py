"""`pieria resume`: go on with a session where it stopped, whatever ended it."""

from __future__ import annotations

from collections.abc import Sequence

from pieria.commands.arguments import add_work_options, parser
from pieria.core.errors import UsageError


def main(words: Sequence[str]) -> int:
    """Open a session, take up unfinished work and run until the agent is done."""
    options = parser("resume", "Go on with a session where it stopped; unfinished work goes on.")
    options.add_argument("session", nargs="?", metavar="ID", help="a session's id or the start of it")
    options.add_argument("--last", action="store_true", help="the latest session of this folder")
    options.add_argument("--yes", action="store_true", help="go on without asking (there is nobody to ask here)")
    add_work_options(options)
    given = options.parse_args(words)
    if (given.session is None) == (not given.last):
        raise UsageError("name one session", "pieria resume ID, or --last; 'pieria sessions' lists them")
    from pieria.app.drive import Asked, drive

    return drive(Asked.of(given, prompt=None, session=given.session, latest=given.last))
