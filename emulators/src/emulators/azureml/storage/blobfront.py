"""TLS in front of the storage account: bytes pass through in both directions, streamed and unchanged.

The SDK uses only https for datastores, without an option to change that. Paths stay unchanged (/ACCOUNT/...), so the
signatures that clients compute stay valid.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

PIECE = 256 * 1024
# Headers of one connection, not of the message; and Host, which is not part of a storage signature.
OF_THE_CONNECTION = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "expect", "te", "upgrade"})
OURS = ("Content-Type", "Accept", "Accept-Encoding", "User-Agent")  # aiohttp adds these where the client had none


class BlobFront:
    """Forwards to the blob service at `blob_url` (http://HOST:PORT/ACCOUNT). Made by `open_front`."""

    def __init__(self, blob_url: str, session: aiohttp.ClientSession) -> None:
        address = urlsplit(blob_url)
        self._origin = f"{address.scheme}://{address.netloc}"
        self._account = address.path.strip("/")
        self._session = session

    def table(self) -> list[web.RouteDef]:
        paths = (f"/{self._account}", f"/{self._account}/{{rest:.*}}")
        return [web.route("*", path, self.forward) for path in paths]

    async def forward(self, request: web.Request) -> web.StreamResponse:
        async with self._session.request(
            request.method,
            URL(self._origin + request.raw_path, encoded=True),
            headers=_end_to_end(request.headers),
            data=request.content.iter_chunked(PIECE) if request.can_read_body else None,
            skip_auto_headers=OURS,
            allow_redirects=False,
        ) as upstream:
            response = web.StreamResponse(status=upstream.status, headers=_end_to_end(upstream.headers))
            await response.prepare(request)
            async for piece in upstream.content.iter_chunked(PIECE):
                await response.write(piece)
            await response.write_eof()
            return response


@asynccontextmanager
async def open_front(blob_url: str) -> AsyncIterator[BlobFront]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    async with aiohttp.ClientSession(auto_decompress=False, timeout=timeout, trust_env=False) as session:
        yield BlobFront(blob_url, session)


def _end_to_end(headers: Mapping[str, str]) -> CIMultiDict[str]:
    kept = ((key, value) for key, value in headers.items() if key.lower() not in OF_THE_CONNECTION)
    return CIMultiDict(kept)
