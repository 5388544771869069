"""`pieria demo`: a real session in a scratch repository with a scripted model. No key, no network."""

from __future__ import annotations

from collections.abc import Sequence

from pieria.commands.arguments import parser


def main(words: Sequence[str]) -> int:
    """Run the demo."""
    options = parser(
        "demo", "A real session in a scratch repository: real tools, log, shell and tests; scripted model."
    )
    options.add_argument("--json", action="store_true", help="print the log's records instead of the story")
    given = options.parse_args(words)
    from pieria.app.demo import demo

    return demo(as_json=given.json)
