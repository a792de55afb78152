"""How the emulators' HTTP servers accept connections: only from this machine, up to a maximum, and with time
limits."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import time
from typing import Any, NoReturn

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web_protocol import RequestHandler

from emulators.neighbours import is_ours
from emulators.origin import only_from_here

IDLE_SECONDS = 30.0  # for a request's headers, and between two requests of a connection
BODY_SECONDS = 60.0
LINGER_SECONDS = 1.0  # for the rest of a body that was answered before its end
CONNECTIONS = 512  # half of a process's usual limit of open files
SAID_AGAIN_SECONDS = 60.0  # too many clients are logged once in this time, not once per client

log = logging.getLogger("emulators.serving")


class Listener:
    """Serves an application on a bound socket: `start`, `stop_accepting`, `close`.

    With `local_only` a page of another origin gets a 403. A connection is closed in three cases: its next request does
    not arrive within IDLE_SECONDS; it has been idle longest and a new connection would exceed CONNECTIONS; or it
    belongs to another user, where the system reports users.
    """

    def __init__(
        self, app: web.Application, bound: socket.socket, tls: ssl.SSLContext | None = None, *, local_only: bool = True
    ) -> None:
        if local_only:
            app.middlewares.insert(0, only_from_here)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=1.0,
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=LINGER_SECONDS,
        )
        self._bound = bound
        self._tls = tls

    async def start(self) -> None:
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        assert self._runner.server is not None
        self._server = await loop.create_server(Doors(self._runner.server), sock=self._bound, ssl=self._tls)

    def stop_accepting(self) -> None:
        """Stop accepting connections. Open connections continue."""
        self._server.close()

    async def close(self) -> None:
        """Close every connection, after a second for unfinished requests. A second call does nothing."""
        self._server.close()
        await self._runner.cleanup()


class Doors:
    """The protocol of new connections to a server, which has at most CONNECTIONS of them.

    At the maximum, the connection that has been idle longest is closed for a new one. If no connection is idle, the new
    one is closed.
    """

    def __init__(self, server: web.Server) -> None:
        self._server = server
        self._said = -SAID_AGAIN_SECONDS

    def __call__(self) -> asyncio.BaseProtocol:
        return _Door(self)

    def let_in(self, transport: asyncio.Transport) -> None:
        """Pass a connection to the server, or close it."""
        ends = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if None in ends or not is_ours(*ends) or not self._made_room():
            transport.abort()
            return
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)

    def _made_room(self) -> bool:
        connections = self._server.connections
        if len(connections) < CONNECTIONS:
            return True
        waiting = min(filter(_is_idle, connections), key=_idle_since, default=None)
        if waiting is None:
            self._say("%d connections are busy: a new one was closed", CONNECTIONS)
            return False
        self._say("%d connections are open: the one that was idle longest is closed for each new one", CONNECTIONS)
        waiting.force_close()
        return True

    def _say(self, sentence: str, number: int) -> None:
        if time.monotonic() - self._said >= SAID_AGAIN_SECONDS:
            self._said = time.monotonic()
            log.warning(sentence, number)


def _is_idle(connection: RequestHandler) -> bool:
    """Return whether a connection waits for the next request, or for the rest of a request's headers."""
    return connection._waiter is not None and not connection._waiter.done()


def _idle_since(connection: RequestHandler) -> float:
    return connection._next_keepalive_close_time  # IDLE_SECONDS after its last answer


class _Door(asyncio.Protocol):
    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._doors.let_in(transport)


async def read_body(request: web.BaseRequest) -> bytes:
    """Return the request's body. A client that does not send the whole body within BODY_SECONDS gets a 408."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text=f"The body did not come within {BODY_SECONDS:g} s.") from None


def parse_json(text: bytes) -> Any:
    """Parse JSON. Raises ValueError for invalid JSON, for NaN and infinities, and for JSON that is nested too
    deeply."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


@web.middleware
async def body_in_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Read the request's body within BODY_SECONDS before the handler runs; the handler then has the body at once."""
    await read_body(request)
    return await handler(request)
