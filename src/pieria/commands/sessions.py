"""`pieria sessions`: what sessions there are, newest first. Reads headers, opens nothing for writing."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pieria.commands.arguments import parser


def main(words: Sequence[str]) -> int:
    """List sessions."""
    options = parser("sessions", "List sessions, newest first.")
    options.add_argument("search", nargs="?", metavar="TEXT", help="only those whose id, folder or prompt holds TEXT")
    options.add_argument("--here", action="store_true", help="only those of this folder")
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    given = options.parse_args(words)
    from pieria.app.logs import session_lines

    for line in session_lines(search=given.search or "", here=given.here, as_json=given.json):
        sys.stdout.write(line)
    return 0
