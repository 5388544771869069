"""`pieria trust`: look at what a project would set, and let it, until it changes."""

from __future__ import annotations

from collections.abc import Sequence

from pieria.commands.arguments import parser
from pieria.core.errors import UsageError


def main(words: Sequence[str]) -> int:
    """Show the project's config and record trust in it, or take trust back."""
    options = parser("trust", "Show what this project's config would set, and trust it until it changes.")
    options.add_argument("--revoke", action="store_true", help="trust nothing of this folder any more")
    options.add_argument("--yes", action="store_true", help="trust without a question")
    given = options.parse_args(words)
    if given.revoke and given.yes:
        raise UsageError("--revoke and --yes are given", "give one of them")
    import os

    from pieria.app.trust import give_trust, revoke_trust

    if given.revoke:
        return revoke_trust(os.environ, os.getcwd())
    return give_trust(os.environ, os.getcwd(), is_sure=given.yes)
