"""Models that play a script: in process for demos and tests, and over a real socket for everything end to end.

Both play the same bytes, and both are read by the code that reads real providers.
`python -m pieria.models.scripted FILE --port-file F --log F` serves until it is told to stop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping

from pieria.core.ports import Answer, BrokenStream, Failure
from pieria.models.exchange import CutResponse, Timeouts
from pieria.models.reading import Reading
from pieria.models.script import Played, Player, Received, Script, load_script
from pieria.models.scripted_server import ScriptedServer

__all__ = ["ScriptedModel", "ScriptedServer", "load_script", "main"]


class ScriptedModel:
    """A core.ports.Model that needs no network. `received` lists every request in order."""

    def __init__(self, scripts: tuple[Script, ...], *, timeouts: Timeouts | None = None) -> None:
        self._player = Player(scripts)
        self._timeouts = timeouts or Timeouts()

    @property
    def received(self) -> list[Received]:
        return self._player.received

    async def stream(self, body: bytes, on_text: Callable[[str], None]) -> Answer | BrokenStream | Failure:
        """Answer as a server with this script would; see core.ports.Model."""
        played = self._player.play(body)
        await asyncio.sleep(played.delay_ms / 1000)
        return await Reading(PlayedReply(played), on_text, timeouts=self._timeouts, secret="").outcome()

    async def close(self) -> None:
        """Nothing is open."""


class PlayedReply:
    """A response that comes from a script and not from a socket."""

    def __init__(self, played: Played) -> None:
        self._played = played
        self._rest = list(reversed(played.chunks))

    @property
    def status(self) -> int:
        return self._played.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._played.headers

    async def read(self, *, timeout_s: float) -> bytes:
        """Return the next chunk, and let others have their turn as a socket would."""
        await asyncio.sleep(0)
        if self._rest:
            return self._rest.pop()
        if self._played.stall:
            await asyncio.sleep(timeout_s)
            raise CutResponse(f"stalled: no data for {timeout_s:g} s")
        if self._played.cut:
            raise CutResponse("the connection closed inside the answer")
        return b""


async def serve(script: str, *, port_file: str, log: str) -> None:
    """Serve a script until SIGINT or SIGTERM. The port file appears whole, when the socket listens."""
    import signal

    server = ScriptedServer(load_script(script), log=log)
    base_url = await server.start()
    if port_file:
        _write_whole(port_file, f"{server.port}\n")
    print(base_url, flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    await server.stop()


def _write_whole(path: str, text: str) -> None:
    from pathlib import Path

    new = Path(f"{path}.new")
    new.write_text(text, encoding="ascii")
    new.replace(path)


def main(arguments: list[str]) -> int:
    """Serve a script as a program of its own."""
    import argparse

    from pieria.core.errors import PieriaError

    parser = argparse.ArgumentParser(prog="python -m pieria.models.scripted", description="Serve scripted answers.")
    parser.add_argument("script", metavar="FILE")
    parser.add_argument("--port-file", default="", help="write the port here once the socket listens")
    parser.add_argument("--log", default="", help="add one JSON line for each request here")
    chosen = parser.parse_args(arguments)
    try:
        asyncio.run(serve(chosen.script, port_file=chosen.port_file, log=chosen.log))
    except PieriaError as problem:
        print(f"{problem}\nhint: {problem.hint}" if problem.hint else problem, file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
