"""`pieria exec`: run a prompt without a terminal until the agent is done. Asks nothing, waits for nobody."""

from __future__ import annotations

from collections.abc import Sequence

from pieria.commands.arguments import add_work_options, parser, read_prompt
from pieria.core.errors import UsageError


def main(words: Sequence[str]) -> int:
    """Run a new session, or go on with one."""
    options = parser("exec", "Run a prompt without a terminal until the agent is done.")
    options.add_argument("prompt", nargs="?", metavar="PROMPT", help="what to do; - reads standard input")
    options.add_argument("--prompt-file", metavar="F", help="read the prompt from a file")
    options.add_argument("--session", metavar="ID", help="go on with this session")
    options.add_argument(
        "--continue", action="store_true", dest="latest", help="go on with this folder's latest session"
    )
    add_work_options(options)
    given = options.parse_args(words)
    prompt = read_prompt(given.prompt, given.prompt_file)
    goes_on = given.session is not None or given.latest
    if given.session is not None and given.latest:
        raise UsageError("--session and --continue are given", "give one of them")
    if prompt is None and not goes_on:
        raise UsageError("no prompt", "pieria exec 'what to do', or - to read standard input")
    from pieria.app.drive import Asked, drive

    return drive(Asked.of(given, prompt=prompt, session=given.session, latest=given.latest))
