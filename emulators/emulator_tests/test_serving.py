"""What every emulator's HTTP server does with clients that never finish, with too many of them, and with odd JSON."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, web

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
    """A client that stops in the middle of a request is let go of, and others are served meanwhile."""
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
    """Half a body is 408 of queues and tables too, whose server has no routes, and no error of theirs."""
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


def test_connections_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit a connection is closed at once; when others have gone there is room again."""
    monkeypatch.setattr(serving, "CONNECTIONS", 3)

    async def talk(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        await asyncio.sleep(0)  # the server has not yet heard of the third
        async with asyncio.timeout(10):
            while True:  # until the server has counted those three
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    refused = await asyncio.wait_for(reader.read(), 0.5) == b""
                except TimeoutError:
                    refused = False
                except ConnectionResetError:
                    refused = True
                writer.close()
                if refused:
                    break
        for _, writer in held:
            writer.close()
        async with asyncio.timeout(10), ClientSession() as session:
            while True:
                try:
                    async with session.post(f"http://127.0.0.1:{port}/", data=b"x") as response:
                        assert await response.read() == b"x"
                        return
                except (OSError, ClientError):
                    await asyncio.sleep(0.02)

    asyncio.run(serve(talk))


@pytest.mark.parametrize("text", [b"{", b"\xff", b'{"a": NaN}', b"-Infinity", b"[" * 100_000, b"1" * 5000])
def test_odd_json_is_a_value_error(text: bytes) -> None:
    """What no other JSON parser takes, and what is too deep or too long for ours, is one kind of error."""
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
    """A name of this machine, and no origin but the server's own."""
    assert (refusal(host, "https", origin, site) is None) == passes
