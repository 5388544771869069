"""`pieria replay`: rebuild every request of a log offline and compare it byte for byte. Exit 6 where they differ."""

from __future__ import annotations

from collections.abc import Sequence

from pieria.commands.arguments import parser
from pieria.core.errors import UsageError


def main(words: Sequence[str]) -> int:
    """Replay a log or a golden file."""
    options = parser("replay", "Rebuild every request of a session offline and compare it byte for byte.")
    options.add_argument("log", nargs="?", metavar="LOG", help="a session id, the start of one, or a .jsonl file")
    options.add_argument("--to", type=int, metavar="SEQ", help="stop after this record")
    options.add_argument("--golden", metavar="FILE", help="replay a golden file instead: needs no log")
    options.add_argument("--write-golden", metavar="FILE", help="write a golden file of this log")
    options.add_argument("--json", action="store_true", help="the result as one JSON object")
    given = options.parse_args(words)
    if (given.log is None) == (given.golden is None):
        raise UsageError("name a log or a golden file", "pieria replay LOG, or pieria replay --golden FILE")
    if given.golden is not None and (given.write_golden is not None or given.to is not None):
        raise UsageError("--golden goes with neither --to nor --write-golden", "leave them out")
    from pieria.app import replaying

    if given.golden is not None:
        return replaying.replay_golden_file(given.golden, as_json=given.json)
    return replaying.replay_log(given.log, to=given.to, golden=given.write_golden, as_json=given.json)
