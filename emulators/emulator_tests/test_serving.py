"""The emulators' HTTP servers with clients that never finish, too many clients, and odd JSON."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from emulators import serving
from emulators.origin import refusal
from emulators.storage.common.account import Account
from emulators.storage.common.server import served
from emulators.storage.keys import ACCOUNT, KEY
from emulators.storage.queues.service import QueueService
from emulators.storage.queues.store import Queues

Talk = Callable[[int], Awaitable[None]]


async def serve(talk: Talk) -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app = web.Application(middlewares=[serving.body_in_time])
    app.add_routes([web.post("/", echo)])
    bound = socket.create_server(("127.0.0.1", 0))
    listener = serving.Listener(app, bound)
    await listener.start()
    try:
        await talk(bound.getsockname()[1])
    finally:
        await listener.close()


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le", b""),
        (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf", b"HTTP/1.1 408"),
    ],
    ids=["nothing", "half a header", "half a body"],
)
def test_half_open_requests_end(monkeypatch: pytest.MonkeyPatch, sent: bytes, answer: bytes) -> None:
    """A client that stops in the middle of a request is disconnected, and other clients are served meanwhile."""
    monkeypatch.setattr(serving, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(serving, "BODY_SECONDS", 0.5)

    async def talk(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with ClientSession() as session, session.post(f"http://127.0.0.1:{port}/", data=b"x") as response:
            assert await response.read() == b"x"
        said = await asyncio.wait_for(reader.read(), 10)
        assert said.startswith(answer)
        writer.close()

    asyncio.run(serve(talk))


def test_the_storage_services_wait_as_long(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Half a body is a 408 in queues and tables, too, whose server has no routes. It is not a server error."""
    monkeypatch.setattr(serving, "BODY_SECONDS", 0.2)

    async def talk() -> bytes:
        with contextlib.closing(Queues(tmp_path / "queues.sqlite")) as queues:
            async with served(QueueService(queues, Account(ACCOUNT, KEY, "queue")), "127.0.0.1", 0) as port:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"PUT /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf")
                said = await asyncio.wait_for(reader.readline(), 10)
                writer.close()
                return said

    assert asyncio.run(talk()).startswith(b"HTTP/1.1 408")


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
WHOLE = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n\r\nx"


async def asked(connection: Connection) -> bytes:
    """Send a request on this connection and return the answer, or nothing if the server has closed the connection."""
    reader, writer = connection
    with contextlib.suppress(ConnectionError):
        writer.write(WHOLE)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        return head + await asyncio.wait_for(reader.readexactly(1), 10)
    return b""


async def is_closed(connection: Connection) -> bool:
    """Return whether the server closes the connection in time."""
    reader, writer = connection
    try:
        return await asyncio.wait_for(reader.read(), 10) == b""
    except ConnectionError:
        return True
    finally:
        writer.close()


def test_idle_connections_make_room(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """At the limit the longest idle connection is closed for a new one, and the log says so once."""
    monkeypatch.setattr(serving, "CONNECTIONS", 3)

    async def talk(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for number in (1, 0, 2):
            assert (await asked(held[number])).startswith(b"HTTP/1.1 200")
        later = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for connection in (*later, held[2]):
            assert (await asked(connection)).startswith(b"HTTP/1.1 200")
        assert await is_closed(held[1])
        assert await is_closed(held[0])
        for _, writer in (*held, *later):
            writer.close()

    asyncio.run(serve(talk))
    assert [r.getMessage() for r in caplog.records if r.name == "emulators.serving"] == [
        "3 connections are open: the one that was idle longest is closed for each new one"
    ]


def test_busy_connections_are_kept(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A connection with a running request is never closed for a new one. Instead the new connection is closed and
    logged. After the answer there is room again."""
    monkeypatch.setattr(serving, "CONNECTIONS", 2)

    async def talk(port: int) -> None:
        busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in busy:
            writer.write(WHOLE[:-5] + b"\r\nExpect: 100-continue\r\n\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert await is_closed(await asyncio.open_connection("127.0.0.1", port))
        for reader, writer in busy:
            writer.write(b"x")
            assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 200")
        after = await asyncio.open_connection("127.0.0.1", port)
        assert (await asked(after)).startswith(b"HTTP/1.1 200")
        for _, writer in (*busy, after):
            writer.close()

    asyncio.run(serve(talk))
    assert "2 connections are busy: a new one was closed" in caplog.text


@pytest.mark.parametrize("said", [b"", b"GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"], ids=["new", "after an answer"])
def test_the_storage_services_end_idle_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: bytes
) -> None:
    """The storage services close a connection that is idle for IDLE_SECONDS."""
    monkeypatch.setattr(serving, "IDLE_SECONDS", 0.2)

    async def talk() -> None:
        with contextlib.closing(Queues(tmp_path / "queues.sqlite")) as queues:
            async with served(QueueService(queues, Account(ACCOUNT, KEY, "queue")), "127.0.0.1", 0) as port:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(said)
                answer = await asyncio.wait_for(reader.read(), 10)
                assert answer.startswith(b"HTTP/1.1 4" if said else b"")
                writer.close()

    asyncio.run(talk())


@pytest.mark.parametrize("text", [b"{", b"\xff", b'{"a": NaN}', b"-Infinity", b"[" * 100_000, b"1" * 5000])
def test_odd_json_is_a_value_error(text: bytes) -> None:
    """JSON that other parsers refuse, and JSON too deep or too long for ours, raise the same error."""
    with pytest.raises(ValueError, match=r".+"):
        serving.parse_json(text)


@pytest.mark.parametrize(
    ("host", "origin", "site", "passes"),
    [
        ("127.0.0.1:80", None, None, True),
        ("localhost", None, "none", True),
        ("[::1]:80", "https://[::1]:80", "same-origin", True),
        ("127.0.0.1:80", "https://127.0.0.1:81", None, False),
        ("127.0.0.1:80", "http://127.0.0.1:80", None, False),
        ("127.0.0.1:80", "null", None, False),
        ("127.0.0.1:80", None, "same-site", False),
        ("127.0.0.1.evil.example", None, None, False),
        ("evil.example@127.0.0.1x", None, None, False),
        ("[::1", None, None, False),
        ("", None, None, False),
    ],
)
def test_who_is_let_in(host: str, origin: str | None, site: str | None, passes: bool) -> None:
    """Only this machine's names are accepted as host, and only the server's own origin."""
    assert (refusal(host, "https", origin, site) is None) == passes
