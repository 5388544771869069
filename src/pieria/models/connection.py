"""One socket and the state of HTTP/1.1 on it. Reads with deadlines, and says how a connection failed."""

from __future__ import annotations

import asyncio

import h11

from pieria.models.exchange import CutResponse, NoResponse, Timeouts

READ_BYTES = 65536
HEADER_BYTES = 65536
DRAIN_S = 0.2
"""Longest wait for the end of an old response before its connection is given up."""


class ClosedEarly(NoResponse):
    """The connection was closed before a single byte of a response."""


class Connection:
    """One socket and the state of HTTP on it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, key: tuple[bool, str, int]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_BYTES)
        self.key = key
        self.was_idle = False

    async def exchange(self, request: h11.Request, body: bytes, *, timeouts: Timeouts) -> h11.Response:
        """Send a request and wait for the header of its response. Raises NoResponse.

        Nothing waits for the body to be taken: a server may refuse it long before it has read it.
        """
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
        clock = asyncio.get_running_loop().time
        deadline = None
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as problem:
                raise NoResponse(f"the server's answer is no HTTP: {problem}") from problem
            if isinstance(event, h11.Response):
                if event.status_code == 408 and self.was_idle:
                    raise ClosedEarly("the server had given up on an idle connection")
                return event
            if event is not h11.NEED_DATA:
                continue
            if deadline is None:
                self._http.receive_data(await self._first_bytes(timeouts.first_byte_s))
                deadline = clock() + timeouts.between_bytes_s
            else:
                self._http.receive_data(await self._header_bytes(deadline - clock()))

    async def _first_bytes(self, timeout_s: float) -> bytes:
        try:
            data = await self._receive(timeout_s)
        except TimeoutError:
            raise NoResponse(f"no answer for {timeout_s:g} s") from None
        except OSError as problem:
            raise ClosedEarly(f"the connection broke: {in_words(problem)}") from problem
        if not data:
            raise ClosedEarly("the server closed the connection without an answer")
        return data

    async def _header_bytes(self, timeout_s: float) -> bytes:
        try:
            data = await self._receive(timeout_s)
        except TimeoutError:
            raise NoResponse("the header of the answer never ended") from None
        except OSError as problem:
            raise NoResponse(f"the connection broke: {in_words(problem)}") from problem
        if not data:
            raise NoResponse("the connection closed inside the header of the answer")
        return data

    async def body(self, *, timeout_s: float) -> bytes:
        """Return the next bytes of the body, b"" at its proper end. Raises CutResponse."""
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as problem:
                raise CutResponse(f"the connection closed inside the answer, or it is no HTTP: {problem}") from problem
            if isinstance(event, h11.Data):
                if event.data:
                    return bytes(event.data)
            elif event is h11.NEED_DATA:
                try:
                    self._http.receive_data(await self._receive(timeout_s))
                except TimeoutError:
                    raise CutResponse(f"stalled: no data for {timeout_s:g} s") from None
                except OSError as problem:
                    raise CutResponse(f"the connection broke inside the answer: {in_words(problem)}") from problem
            else:
                return b""

    async def _receive(self, timeout_s: float) -> bytes:
        """Read what is there. A timer that fires late proves that we were stopped, not the server silent."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                async with asyncio.timeout(timeout_s):
                    return await self._reader.read(READ_BYTES)
            except TimeoutError:
                if clock() - began < timeout_s + 2:
                    raise

    async def settle(self) -> bool:
        """Whether the connection can carry another request: reads the rest of the last response first."""
        if self._reader.at_eof() or self._reader.exception() or self._writer.is_closing():
            return False
        try:
            async with asyncio.timeout(DRAIN_S):
                while self._http.their_state is h11.SEND_BODY:
                    await self.body(timeout_s=DRAIN_S)
        except (CutResponse, TimeoutError):
            return False
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return self._http.our_state is h11.IDLE
        self._http.start_next_cycle()
        return not self._reader.at_eof() and not self._http.trailing_data[0]

    def abort(self) -> None:
        """Drop the connection at once."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Drop the connection and wait until it is gone."""
        self.abort()
        try:
            await self._writer.wait_closed()
        except OSError:
            return


def in_words(problem: OSError | UnicodeError) -> str:
    """Say what the system said, without numbers and class names."""
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
