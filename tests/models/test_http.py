"""The HTTP client and the adapter against servers that misbehave, over real sockets."""

from __future__ import annotations

import asyncio
import ssl
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

from pieria.core.errors import UsageError
from pieria.core.ports import Answer, BrokenStream, Failure
from pieria.models.chat import ChatModel
from pieria.models.exchange import Timeouts, retry_after_s
from pieria.models.script import parse_script
from pieria.models.scripted_server import ScriptedServer
from pieria.models.url import Url, parse_url
from tests.models.conftest import KEY, body

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CERTIFICATE = Path(__file__).with_name("localhost.pem")
EVENTS = b'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
CHUNKS = b"".join(b"1\r\n%c\r\n" % byte for byte in EVENTS)
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(EVENTS), EVENTS)
TWO = parse_script(b'[{"text":"one"},{"text":"two"}]')


@asynccontextmanager
async def talking(talk: Talk, *, tls: bool = False) -> AsyncIterator[str]:
    """Serve each connection with `talk`, then close it; yield the base URL."""
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    jobs = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        jobs.add(asyncio.current_task())
        try:
            await talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    yield f"{'https://localhost' if tls else 'http://127.0.0.1'}:{port}"
    server.close()
    for job in jobs:
        job.cancel()
    await asyncio.gather(*jobs, return_exceptions=True)


async def request_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read one request; return head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    return head, await reader.readexactly(length)


def sending(*pieces: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return talk


async def ask(url: str, *, key: str = KEY, timeouts: Timeouts | None = None, sent: bytes | None = None) -> object:
    model = ChatModel(url, key, timeouts=timeouts)
    try:
        return await model.stream(sent or body(), lambda _: None)
    finally:
        await model.close()


OK = Answer("ok", stop_reason="stop")


@pytest.mark.parametrize("suffix", ["/v1", "/v1/", "/v1?api-version=2", "", "/a/b//"])
async def test_the_request_is_what_was_asked_for(suffix: str) -> None:
    heads = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await request_of(reader))
        writer.write(SIZED)

    async with talking(talk) as url:
        assert await ask(url + suffix) == OK
        assert await ask(url + suffix, key="") == OK
    place, _, query = suffix.partition("?")
    target = f"{place.rstrip('/')}/chat/completions{'?' + query if query else ''}"
    (head, sent), (bare, _) = heads
    assert head.startswith(f"POST {target} HTTP/1.1\r\n".encode())
    assert sent == body()
    assert f"\r\nauthorization: bearer {KEY}\r\n".encode() in head.lower()
    assert b"authorization" not in bare.lower()
    assert f"\r\nhost: {url.removeprefix('http://')}\r\n".encode() in head.lower()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://h/",
        "http://",
        "http:///v1",
        "https://u:p@h/v1",
        "http://h:0",
        "http://h:x",
        "http://h:99999",
        "http://[::1",
        "http://h/ä",
        "http://h/\r\nx: y",
    ],
)
def test_a_base_url_that_is_none_is_the_persons_mistake(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        ChatModel(url)


@pytest.mark.parametrize(
    "url", ["https://me:hush@h/v1", "https://me:hu/sh@h/v1", "http://me:hu?sh#@h", "me:hush@h", "ftp://hush@h/@/v1"]
)
def test_a_base_url_with_a_login_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(UsageError, match="can't be a base URL") as caught:
        ChatModel(url)
    told = "".join(traceback.format_exception(caught.value))
    assert not any(part in f"{caught.value} {caught.value.hint}" for part in ("hu", "sh", "me:"))
    assert url not in told
    assert "PIERIA_API_KEY" in caught.value.hint


def test_a_key_that_no_header_may_hold_is_the_persons_mistake() -> None:
    for key in ("a\nb", "schlüssel", "a\x00b"):
        with pytest.raises(UsageError) as caught:
            ChatModel("http://h", key)
        assert key not in str(caught.value)
    ChatModel("http://h", f"  {KEY}\n")


def test_urls_are_parsed() -> None:
    assert parse_url("HTTPS://Example.org/v1?x=1#y") == Url(secure=True, host="Example.org", port=443, target="/v1?x=1")
    assert parse_url("http://[::1]:8080") == Url(secure=False, host="::1", port=8080, target="/")
    assert [
        parse_url(url).authority for url in ("http://[::1]:8080", "http://h:80/", "https://h:80", "https://h?x")
    ] == ["[::1]:8080", "h", "h:80", "h"]


async def test_a_connection_is_used_again() -> None:
    server = ScriptedServer(TWO)
    model = ChatModel(await server.start())
    for request in (body(), body("user", "assistant"), body(), body("user", "assistant", "assistant"), body()):
        await model.stream(request, lambda _: None)
    assert (server.connections, len(server.received)) == (1, 5)
    await model.close()
    await server.stop()


async def test_a_connection_that_was_closed_while_idle_is_made_anew() -> None:
    server = ScriptedServer(TWO)
    model = ChatModel(await server.start())
    for _ in range(3):
        assert isinstance(await model.stream(body(), lambda _: None), Answer)
        await server.drop_idle()
    assert (server.connections, len(server.received)) == (3, 3)
    await model.close()
    await server.stop()


@pytest.mark.parametrize(
    "goodbye", [b"", b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"]
)
async def test_a_reused_connection_that_dies_before_a_byte_is_tried_once_more(goodbye: bytes) -> None:
    served = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        served.append("answered")
        writer.write(SIZED)
        await request_of(reader)
        served.append("dropped")
        writer.write(goodbye)

    async with talking(talk) as url:
        model = ChatModel(url)
        assert [await model.stream(body(), lambda _: None) for _ in range(2)] == [OK, OK]
        await model.close()
    assert served == ["answered", "dropped", "answered"]


@pytest.mark.parametrize(
    "piece", [b"H", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"]
)
async def test_once_a_byte_came_nothing_is_sent_twice(piece: bytes) -> None:
    served = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (SIZED, piece):
            await request_of(reader)
            served.append(answer)
            writer.write(answer)

    async with talking(talk) as url:
        model = ChatModel(url)
        assert await model.stream(body(), lambda _: None) == OK
        assert isinstance(await model.stream(body(), lambda _: None), BrokenStream | Failure)
        await model.close()
    assert served == [SIZED, piece]


async def test_a_new_connection_that_dies_is_not_tried_again() -> None:
    served = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(await request_of(reader))

    async with talking(talk) as url:
        found = await ask(url)
    assert found == Failure("network", "the server closed the connection without an answer")
    assert len(served) == 1


async def test_a_connection_begun_early_is_new_and_not_tried_again() -> None:
    served = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(await request_of(reader))

    async with talking(talk) as url:
        model = ChatModel(url)
        model.connect_early()
        assert isinstance(await model.stream(body(), lambda _: None), Failure)
        await model.close()
    assert len(served) == 1


async def test_a_server_hears_at_once_that_nobody_listens_any_more() -> None:
    heard, began = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b'HTTP/1.1 200 OK\r\n\r\ndata: {"choices":[{"delta":{"content":"a"}}]}\n\n')
        try:
            await reader.read(-1)
        finally:
            heard.set()

    async with talking(talk) as url:
        model = ChatModel(url)
        job = asyncio.create_task(model.stream(body(), lambda _: began.set()))
        await began.wait()
        job.cancel()
        await asyncio.wait([job])
        await heard.wait()
        await model.close()


async def test_a_connection_begun_early_carries_the_request() -> None:
    server = ScriptedServer(TWO)
    model = ChatModel(await server.start())
    model.connect_early()
    model.connect_early()
    assert isinstance(await model.stream(body(), lambda _: None), Answer)
    model.connect_early()
    assert isinstance(await model.stream(body(), lambda _: None), Answer)
    assert server.connections == 1
    await model.close()
    await server.stop()


async def test_an_early_connection_that_failed_is_the_requests_failure() -> None:
    server = ScriptedServer(TWO)
    url = await server.start()
    await server.stop()
    model = ChatModel(url)
    model.connect_early()
    found = await model.stream(body(), lambda _: None)
    assert isinstance(found, Failure)
    assert (found.kind, found.status) == ("network", 0)
    assert "no connection to 127.0.0.1:" in found.message
    model.connect_early()
    await model.close()


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ([b""], "network"),
        ([b"SSH-2.0-OpenSSH_9.9\r\n"], "network"),
        ([b"HTTP/1.1 200 OK\r\n"], "network"),
        ([b"HTTP/1.1 200 OK\r\n", b"x: " + b"y" * 200_000], "network"),
        ([b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b"], "bad_answer"),
        ([b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nIt works!"], "bad_answer"),
    ],
)
async def test_what_is_no_answer_is_a_failure(pieces: list[bytes], kind: str) -> None:
    async with talking(sending(*pieces)) as url:
        found = await ask(url)
    assert isinstance(found, Failure)
    assert found.kind == kind


@pytest.mark.parametrize(
    "reply",
    [
        SIZED,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" + EVENTS,
        b"HTTP/1.0 200 OK\r\n\r\n" + EVENTS.removesuffix(b"\n\n"),
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + EVENTS,
        b"HTTP/1.1 200 OK\r\n\r\n\xef\xbb\xbf: hello\r\n\r\n" + EVENTS.replace(b"\n", b"\r\n"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKS + b"0\r\n\r\n",
    ],
)
async def test_the_forms_that_http_allows_are_read(reply: bytes) -> None:
    async with talking(sending(reply)) as url:
        assert await ask(url) == OK


async def test_a_response_is_the_same_however_it_is_cut_up() -> None:
    async with talking(sending(*(SIZED[place : place + 1] for place in range(len(SIZED))))) as url:
        assert await ask(url) == OK


async def test_an_answer_before_the_body_was_read_is_heard() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await reader.read(-1)

    async with talking(talk) as url:
        found = await ask(url, sent=b"x" * 30_000_000)
    assert found == Failure("too_long", "status 413 without a word", 413)


async def test_each_silence_has_its_own_limit() -> None:
    never = asyncio.Event()

    def silent_after(piece: bytes) -> Talk:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await request_of(reader)
            writer.write(piece)
            await never.wait()

        return talk

    head = b"HTTP/1.1 200 OK\r\n\r\n"
    first = Timeouts(first_byte_s=0.05, between_bytes_s=20)
    between = Timeouts(first_byte_s=20, between_bytes_s=0.05)
    for piece, timeouts, outcome in (
        (b"", first, Failure("network", "no answer for 0.05 s")),
        (b"HTTP/1.1 200", between, Failure("network", "the header of the answer never ended")),
        (head, first, BrokenStream("stalled: no data for 0.05 s")),
        (head + EVENTS[:9], between, BrokenStream("stalled: no data for 0.05 s", 9)),
    ):
        async with talking(silent_after(piece)) as url:
            assert await ask(url, timeouts=timeouts) == outcome


async def test_pings_alone_are_a_silence_too() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b": ping\n\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with talking(talk) as url:
        found = await ask(url, timeouts=Timeouts(only_pings_s=0.1))
    assert isinstance(found, BrokenStream)
    assert found.detail == "stalled: nothing but pings for 0.1 s"


async def test_a_connection_that_is_never_accepted_times_out() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)

    async with talking(talk) as url:
        found = await ask(url.replace("http:", "https:"), timeouts=Timeouts(connect_s=0.1))
    assert found == Failure("network", f"no connection to {url.removeprefix('http://')} within 0.1 s")


async def test_tls_is_verified_against_the_roots_that_were_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with talking(sending(SIZED), tls=True) as url:
        stranger = await ask(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert await ask(url) == OK
        other_name = await ask(url.replace("localhost", "127.0.0.1"))
    for found in (stranger, other_name):
        assert isinstance(found, Failure)
        assert found.kind == "network"
        assert "certificate" in found.message.lower()


@pytest.mark.parametrize("status", [b"401 No", b"200 OK"])
async def test_no_error_holds_the_key_or_a_control_character(status: bytes) -> None:
    said = f'{{"error":{{"message":"\\u001b[31mbad key \\u202e{KEY}\\u0007 {"x" * 455} {KEY}"}}}}'.encode()
    async with talking(sending(b"HTTP/1.1 " + status + b"\r\n\r\n" + said)) as url:
        found = await ask(url)
    assert isinstance(found, Failure)
    assert found.message.startswith("[31mbad key <key> xxx")
    assert KEY[:6] not in found.message
    assert found.message.isprintable()
    assert len(found.message) <= 500


NOW = time.time()
WAITS = [
    ({}, None),
    ({"retry-after": "1152"}, 1152.0),
    ({"retry-after": " 0.5 "}, 0.5),
    ({"retry-after": "-5"}, 0.0),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": ""}, None),
    ({"retry-after": "5", "retry-after-ms": "250"}, 0.25),
    ({"retry-after": formatdate(NOW + 90, usegmt=True), "date": formatdate(NOW, usegmt=True)}, 90.0),
    ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
def test_the_wait_that_a_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds
