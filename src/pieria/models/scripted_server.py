"""A loopback HTTP server that plays a script over a real socket, byte for byte as the in-process model reads it."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from pieria.models.script import Played, Player, Received, Script


class ScriptedServer:
    """Listens from `start` to `stop`. `received` lists every request, `connections` counts the sockets accepted."""

    def __init__(self, scripts: tuple[Script, ...], *, log: str = "") -> None:
        self._player = Player(scripts)
        self._log = log
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._jobs: set[asyncio.Task[None]] = set()
        self._asked = asyncio.Condition()
        self.connections = 0
        self.headers: list[dict[str, str]] = []

    @property
    def received(self) -> list[Received]:
        return self._player.received

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> str:
        """Listen on a free port of 127.0.0.1; return the base URL."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self.port}/v1"

    async def stop(self) -> None:
        """Close everything, also in the middle of an answer."""
        assert self._server is not None
        self._server.close()
        for job in list(self._jobs):
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        await self._server.wait_closed()

    async def drop_idle(self) -> None:
        """Close all connections, as a server does that has waited long enough for a next request."""
        for writer in list(self._writers):
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def asked(self, count: int) -> None:
        """Wait until `count` requests have come."""
        async with self._asked:
            await self._asked.wait_for(lambda: len(self.received) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        job = asyncio.current_task()
        assert job is not None
        self._jobs.add(job)
        self._writers.add(writer)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            self._jobs.discard(job)
            self._writers.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; False when the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.headers.append(headers)
        played = self._player.play(body)
        self._write_log()
        async with self._asked:
            self._asked.notify_all()
        await asyncio.sleep(played.delay_ms / 1000)
        writer.write(_head(played))
        for chunk in played.chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
        if played.stall:
            await reader.read()  # until the client gives up
            return False
        if played.cut:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _write_log(self) -> None:
        if self._log:
            from pathlib import Path

            with Path(self._log).open("ab") as file:
                file.write(msgspec.json.encode(self.received[-1]) + b"\n")


def _head(played: Played) -> bytes:
    lines = [f"HTTP/1.1 {played.status} Scripted", "transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in played.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
