"""One small HTTP/1.1 client: POST a body, stream the response, keep the connection for the next turn.

A request is sent twice only when an idle connection turns out to have been closed before any byte came back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import h11

from pieria.models.connection import READ_BYTES, ClosedEarly, Connection, in_words
from pieria.models.exchange import NoResponse, Timeouts
from pieria.models.url import Url

if TYPE_CHECKING:
    import ssl

IDLE_CONNECTIONS = 16

Headers = Sequence[tuple[str, str]]


class HttpClient:
    """Connections to any number of servers; one request at a time on each, the idle ones kept."""

    def __init__(self, *, timeouts: Timeouts | None = None, user_agent: str = "pieria") -> None:
        self._timeouts = timeouts or Timeouts()
        self._user_agent = user_agent
        self._idle: dict[tuple[bool, str, int], list[Connection]] = {}
        self._early: dict[tuple[bool, str, int], asyncio.Task[Connection]] = {}
        self._open: set[Connection] = set()
        self._context: ssl.SSLContext | None = None

    def connect_early(self, url: Url) -> None:
        """Begin to connect, so that the next request finds a connection made. A failure waits for it too."""
        key = _origin(url)
        if key not in self._early and not self._idle.get(key):
            self._early[key] = early = asyncio.create_task(self._connect(url))
            early.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def post(self, url: Url, body: bytes, *, headers: Headers) -> HttpReply:
        """Send exactly `body` and return when the response's header is there. Raises NoResponse.

        ValueError: a header that no server would take.
        """
        wanted = [("Host", url.authority), ("User-Agent", self._user_agent), *headers]
        wanted.append(("Content-Length", str(len(body))))
        try:
            request = h11.Request(method="POST", target=url.target, headers=wanted)
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise ValueError("a header holds characters that HTTP does not allow") from None
        waiting = await self._waiting(url)
        if waiting is not None:
            try:
                return await self._exchange(waiting, request, body)
            except ClosedEarly:
                if not waiting.was_idle:
                    raise
        return await self._exchange(await self._connect(url), request, body)

    async def _exchange(self, connection: Connection, request: h11.Request, body: bytes) -> HttpReply:
        response = None
        try:
            response = await connection.exchange(request, body, timeouts=self._timeouts)
        finally:
            if response is None:
                self.discard(connection)
        return HttpReply(self, connection, response)

    async def _waiting(self, url: Url) -> Connection | None:
        """Return a connection that was made before, if one is still good."""
        key = _origin(url)
        idle = self._idle.get(key, [])
        while idle:
            connection = idle.pop()
            if await connection.settle():
                return connection
            self.discard(connection)
        early = self._early.pop(key, None)
        if early is None:
            return None
        waited = early.done()
        try:
            connection = await early
        except NoResponse:
            if waited:  # an old failure says nothing about now
                return None
            raise
        connection.was_idle = waited
        return connection

    async def _connect(self, url: Url) -> Connection:
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                context = await self._tls() if url.secure else None
                reader, writer = await asyncio.open_connection(
                    url.host, url.port, ssl=context, limit=READ_BYTES * 4, happy_eyeballs_delay=0.25
                )
        except TimeoutError:
            raise NoResponse(f"no connection to {url.authority} within {self._timeouts.connect_s:g} s") from None
        except (OSError, UnicodeError) as problem:
            raise NoResponse(f"no connection to {url.authority}: {in_words(problem)}") from problem
        connection = Connection(reader, writer, key=_origin(url))
        self._open.add(connection)
        return connection

    async def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = await asyncio.to_thread(make_tls_context)
        return self._context

    def release(self, connection: Connection) -> None:
        """Take back a connection whose response was read as far as anybody wants."""
        idle = self._idle.setdefault(connection.key, [])
        if connection not in self._open or len(idle) >= IDLE_CONNECTIONS:
            self.discard(connection)
            return
        connection.was_idle = True
        idle.append(connection)

    def discard(self, connection: Connection) -> None:
        """Drop a connection whose state nobody knows."""
        self._open.discard(connection)
        connection.abort()

    async def close(self) -> None:
        """Drop every connection, also those in use."""
        early, self._early = list(self._early.values()), {}
        for job in early:
            job.cancel()
        await asyncio.gather(*early, return_exceptions=True)
        connections, self._open = list(self._open), set()
        self._idle.clear()
        for connection in connections:
            await connection.close()


class HttpReply:
    """A response being read. Ends with `release` (nothing more is wanted) or `discard` (state unknown)."""

    def __init__(self, client: HttpClient, connection: Connection, response: h11.Response) -> None:
        self._client = client
        self._connection = connection
        self._status = response.status_code
        self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}

    @property
    def status(self) -> int:
        return self._status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    async def read(self, *, timeout_s: float) -> bytes:
        return await self._connection.body(timeout_s=timeout_s)

    def release(self) -> None:
        """Keep the connection for the next request."""
        self._client.release(self._connection)

    def discard(self) -> None:
        """Drop the connection."""
        self._client.discard(self._connection)


def make_tls_context() -> ssl.SSLContext:
    """Make a verifying context. Blocking: a bundle of roots takes 20 ms to read, a folder of them none.

    SSL_CERT_FILE and SSL_CERT_DIR say which roots count, as for every program on OpenSSL.
    """
    import os
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    paths = ssl.get_default_verify_paths()
    named = {paths.openssl_cafile_env, paths.openssl_capath_env} & os.environ.keys()
    if not named and paths.capath and _has_hashed_roots(paths.capath):
        context.load_verify_locations(capath=paths.capath)
    else:
        context.load_default_certs()
    return context


def _has_hashed_roots(folder: str) -> bool:
    """Whether OpenSSL can look roots up in a folder: by the names that c_rehash makes, like 5f618aec.0."""
    import os

    with os.scandir(folder) as entries:
        return any(entry.name.endswith(".0") for entry in entries)


def _origin(url: Url) -> tuple[bool, str, int]:
    return url.secure, url.host, url.port
