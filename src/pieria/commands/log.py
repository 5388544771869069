"""`pieria log`: verify, show, follow or measure one session's log, by id or by file."""

from __future__ import annotations

from collections.abc import Sequence

from pieria.commands.arguments import parser


def main(words: Sequence[str]) -> int:
    """Run one of the verbs on a log."""
    options = parser("log", "Look at a session's log. LOG is a session id, the start of one, or a .jsonl file.")
    verbs = options.add_subparsers(dest="verb", required=True, metavar="VERB")
    verify = verbs.add_parser("verify", help="check chain, pairing, contents and requests; print the head hash")
    show = verbs.add_parser("show", help="print records")
    follow = verbs.add_parser("follow", help="print records as they come")
    stats = verbs.add_parser("stats", help="turns, steps, calls and tokens by agent")
    for verb in (verify, show, follow, stats):
        verb.add_argument("log", metavar="LOG")
        verb.add_argument("--json", action="store_true", help="one JSON object a line")
    for verb in (show, follow):
        verb.add_argument("--agent", default="", help="only this agent's records")
        verb.add_argument("--type", default="", help="only records of this type, e.g. tool.finished")
    show.add_argument("--from", type=int, default=0, metavar="SEQ", dest="from_seq")
    show.add_argument("--to", type=int, default=None, metavar="SEQ", dest="to_seq")
    show.add_argument("--follow", action="store_true", help="go on printing as records come")
    given = options.parse_args(words)
    from pieria.app import logs

    path = logs.path_of(given.log)
    match given.verb:
        case "verify":
            return logs.verify(path, as_json=given.json)
        case "stats":
            return logs.stats(path, as_json=given.json)
        case _ if given.verb == "follow" or given.follow:
            return logs.follow(path, agent=given.agent, type=given.type, as_json=given.json)
        case _:
            return logs.show(
                path, agent=given.agent, type=given.type, from_seq=given.from_seq, to_seq=given.to_seq,
                as_json=given.json,
            )  # fmt: skip
