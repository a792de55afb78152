"""The HTTP proxy of jobs. The web folder answers requests to its hosts, and all other requests are forwarded.

The proxy terminates TLS only for the folder's hosts, with certificates of its own authority, which only jobs trust.
Clients need the proxy's secret, because every program on this machine can reach the port.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import logging
import mimetypes
import secrets
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from emulators.azureml.storage.web_folder import WebFolder

log = logging.getLogger(__name__)

MOST_HEAD = 1 << 16  # bytes of a request's first lines
PIECE = 1 << 16
CONNECT_SECONDS = 20
UNREACHABLE = (OSError, TimeoutError, ssl.SSLError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


class WebProxy:
    """Serves on its own port. `upstream` is the machine's own proxy, or '' without one."""

    def __init__(self, web: WebFolder, upstream: str) -> None:
        self._web = web
        self._upstream = urlsplit(upstream) if upstream else None
        import trustme  # slow to import, and most workspaces have no web folder

        self._authority = trustme.CA(organization_name="Azure emulators: web folder")
        self._secret = secrets.token_urlsafe(24)
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._served: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://job:{self._secret}@127.0.0.1:{self.port}"

    @property
    def authority(self) -> bytes:
        """Return the certificate of the authority, which jobs must trust."""
        return bytes(self._authority.cert_pem.bytes())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._begin, "127.0.0.1", 0, limit=MOST_HEAD)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for task in self._served:
                task.cancel()
            await asyncio.gather(*self._served, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._served.add(task)
        task.add_done_callback(self._served.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except UNREACHABLE as error:
            log.info("the proxy of jobs: %s", error)
            with contextlib.suppress(OSError):
                await _say(writer, 502, str(error) or type(error).__name__)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _parsed(head)
        if not hmac.compare_digest(headers.get("proxy-authorization", ""), _basic("job", self._secret)):
            await _say(writer, 407, "This proxy is for jobs.", 'Proxy-Authenticate: Basic realm="jobs"\r\n')
            return
        if method != "CONNECT":
            parts = urlsplit(target)
            if self._web.has(parts.hostname or ""):
                await self._from_folder(writer, method, target)
            else:
                await self._pass_on(reader, writer, parts, _forwarded(head, parts, self._upstream))
            return
        host, _, port = target.rpartition(":")
        if not self._web.has(host):
            await self._tunnel(reader, writer, host, int(port))
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        await writer.start_tls(self._context(host))
        method, path, _ = _parsed(await reader.readuntil(b"\r\n\r\n"))
        await self._from_folder(writer, method, f"https://{host}{path}")

    async def _from_folder(self, writer: asyncio.StreamWriter, method: str, uri: str) -> None:
        if method not in ("GET", "HEAD"):
            await _say(writer, 405, "A folder is read: GET or HEAD.")
            return
        try:
            file = self._web.file(uri)
        except FileNotFoundError as error:
            await _say(writer, 404, str(error))
            return
        assert file, "the host is the folder's"
        await _send(writer, file, body=method == "GET")

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):
            near, far = await self._connect(host, port)
        if self._upstream:
            far.write(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{_login(self._upstream)}\r\n".encode())
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await _joined(reader, writer, near, far)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parts: SplitResult, head: bytes
    ) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):
            near, far = await self._connect(parts.hostname or "", parts.port or 80)
        far.write(head)
        await _joined(reader, writer, near, far)

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._upstream:
            return await asyncio.open_connection(self._upstream.hostname, self._upstream.port or 80)
        return await asyncio.open_connection(host, port)

    def _context(self, host: str) -> ssl.SSLContext:
        if host not in self._contexts:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._authority.issue_cert(host).configure_cert(context)
            self._contexts[host] = context
        return self._contexts[host]


def _parsed(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return method, target, headers


def _forwarded(head: bytes, parts: SplitResult, upstream: SplitResult | None) -> bytes:
    """Return the request for its next hop: with the full URL for a proxy, with the path for a server. The proxy's
    own secret is removed."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, version = first.split(" ", 2)
    path = target if upstream else (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [line for line in lines if not line.lower().startswith(("proxy-authorization:", "proxy-connection:"))]
    login = _login(upstream) if upstream else ""
    wanted = [f"{method} {path} {version}", *kept, f"{login}Connection: close", "", ""]
    return "\r\n".join(wanted).encode("latin-1")


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _login(upstream: SplitResult) -> str:
    if not upstream.username:
        return ""
    return f"Proxy-Authorization: {_basic(unquote(upstream.username), unquote(upstream.password or ''))}\r\n"


async def _send(writer: asyncio.StreamWriter, file: Path, *, body: bool) -> None:
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    size = file.stat().st_size
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    with file.open("rb") as source:
        while body and (piece := source.read(PIECE)):
            writer.write(piece)
            await writer.drain()
    await writer.drain()


async def _say(writer: asyncio.StreamWriter, status: int, words: str, headers: str = "") -> None:
    text = f"{words}\n".encode()
    head = f"HTTP/1.1 {status} {words[:80]}\r\n{headers}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode("latin-1", "replace") + text)
    await writer.drain()


async def _joined(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, near: asyncio.StreamReader, far: asyncio.StreamWriter
) -> None:
    """Copy bytes both ways until both sides have ended."""
    try:
        await asyncio.gather(_pump(reader, far), _pump(near, writer))
    finally:
        far.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while (piece := await source.read(PIECE)) and not target.is_closing():
            target.write(piece)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
