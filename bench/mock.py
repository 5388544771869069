"""A model that answers at once from a script, as a process of its own, and writes down when each request came.

The answer to a request is chosen by how many assistant messages it holds. Each line of the log file is one request:
arrival and end of answer in nanoseconds of the monotonic clock, bytes, and bytes shared with the request before.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(delta: dict, reason: str | None = None) -> bytes:
    """One server-sent event of Chat Completions."""
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    body = {"id": "bench", "object": "chat.completion.chunk", "created": 0, "model": "bench", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def answer(turn: dict, number: int, size: int) -> list[bytes]:
    """The events of one scripted turn: a text, or one tool call."""
    out = [event({"role": "assistant", "content": ""})]
    if "call" in turn:
        name, arguments = turn["call"]
        call = {"index": 0, "id": f"call_{number}", "type": "function"}
        out.append(event({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]}))
        text = json.dumps(arguments)
        out.append(event({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}))
    else:
        out.append(event({"content": turn["text"]}))
    out.append(event({}, "tool_calls" if "call" in turn else "stop"))
    usage = {"prompt_tokens": size // 4, "completion_tokens": 20, "total_tokens": size // 4 + 20}
    last = {"id": "bench", "object": "chat.completion.chunk", "created": 0, "model": "bench", "choices": []}
    out.append(b"data: " + json.dumps({**last, "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n")
    return out


class Mock:
    """Serves one script to one client."""

    def __init__(self, script: list[dict], log: str) -> None:
        self.script = script
        self.log = open(log, "a", encoding="utf-8")  # noqa: SIM115  (lives as long as the server)
        self.before = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests of one connection until it closes."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                body = await reader.readexactly(length)
                arrived = time.monotonic_ns()
                await self.reply(writer, body, arrived)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def reply(self, writer: asyncio.StreamWriter, body: bytes, arrived: int) -> None:
        """Send the answer and note the times."""
        number = body.count(b'{"role":"assistant"')
        turn = self.script[min(number, len(self.script) - 1)]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in answer(turn, number, len(body)):
            writer.write(chunk(piece))
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        done = time.monotonic_ns()
        open_end = self.before[:-2]
        shared = len(open_end) if body.startswith(open_end) else len(os.path.commonprefix([self.before, body]))
        line = {"turn": number, "arrived": arrived, "done": done, "bytes": len(body)}
        line |= {"before": len(open_end), "shared": shared}
        self.before = body
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()


async def main(script: str, log: str, port_file: str) -> None:
    """Serve until killed."""
    with open(script, encoding="utf-8") as source:
        mock = Mock(json.load(source), log)
    server = await asyncio.start_server(mock.serve, "127.0.0.1", 0, limit=1 << 26)
    port = server.sockets[0].getsockname()[1]
    with open(port_file + ".part", "w", encoding="utf-8") as target:
        target.write(f"http://127.0.0.1:{port}/v1")
    os.rename(port_file + ".part", port_file)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
