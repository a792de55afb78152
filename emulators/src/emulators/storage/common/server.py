"""The HTTP side of all services: a request becomes a Call, and its Answer or StorageError becomes a response.

This is aiohttp's bare server without routes, because routes would make a request half as expensive again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sqlite3
import ssl
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, TextIO

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from emulators import serving
from emulators.origin import refusal
from emulators.serving import BODY_SECONDS, Doors, read_body
from emulators.storage.common.calls import VERSION, Answer, Call, http_date, parse_query
from emulators.storage.common.errors import StorageError, invalid_input, too_large
from emulators.storage.common.reserve import disk_full, is_full
from emulators.storage.common.service import Service

AnyService = Service[Any]

log = logging.getLogger("storage")
http_log = logging.getLogger("storage.http")

LONG = 64 * 1024  # bytes; a longer body is streamed
LONGEST_LINE = 32 * 1024  # of a request's head: a name of 1,024 characters, 12 bytes each, and a signature
PURGE_SECONDS = 1.0
BETWEEN_PURGES = 0.002  # seconds for requests, while there is much to remove


def server(service: AnyService, access_log: TextIO | None = None) -> web.Server:
    """Return an HTTP server for the service, with the service's body limit."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        request_id = str(uuid.uuid4())
        asked = request.headers
        signed = "sig" in parse_query(request.raw_path.partition("?")[2])
        of_a_page = (None, None) if service.lets_in(request.method, asked, signed) else _page(asked)
        host = asked.get("Host", "")  # names below localhost always mean this machine
        why = refusal("localhost" if service.account_at(host) else host, request.scheme, *of_a_page)
        if why:
            return web.Response(status=403, text=why)
        answer = await _answer(service, request, request_id)
        if answer.status >= 300 and (request.method == "HEAD" or answer.status == 304):
            answer = _bare(answer)
        headers = _headers(asked, answer, request_id)
        if access_log:
            print(request.method, request.raw_path.partition("?")[0], answer.status, file=access_log)
        if answer.stream is None:
            reason = answer.reason or None
            return web.Response(status=answer.status, reason=reason, body=answer.body, headers=headers)
        return await _streamed(request, web.StreamResponse(status=answer.status, headers=headers), answer.stream)

    def made(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=service.largest_body)

    http_log.addFilter(_without_requests)
    # aiohttp's own access log would hold the signatures of addresses, and cost a sixth of a request. Bodies that are
    # encoded are a blob's content as they are.
    return web.Server(
        handle,
        request_factory=made,
        access_log=None,
        auto_decompress=False,
        keepalive_timeout=serving.IDLE_SECONDS,
        logger=http_log,
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_LINE,
    )


def _headers(asked: Mapping[str, str], answer: Answer, request_id: str) -> dict[str, str]:
    found = {
        "Server": "Emulated-Storage",
        "x-ms-request-id": request_id,
        "x-ms-version": asked.get("x-ms-version") or asked.get("x-ms-api-version") or VERSION,
        **answer.headers,
    }
    if client_id := asked.get("x-ms-client-request-id"):
        found["x-ms-client-request-id"] = client_id
    return {name: value if value.isprintable() else _printable(value) for name, value in found.items()}


def _bare(answer: Answer) -> Answer:
    """Return an error answer without a body and without a Content-Type, because .NET's client would read a body."""
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Type"}
    return replace(answer, body=b"", headers=headers)


def _without_requests(record: logging.LogRecord) -> bool:
    """Remove the text of a malformed request from log records, because it may contain a signature."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.exc_info, record.msg = None, f"{record.msg}: {type(error).__name__}"
    return True


def _printable(value: str) -> str:
    """Return the value with ? for each character that a response header can't contain."""
    return "".join(char if char.isprintable() else "?" for char in value)


def _page(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the Origin and Sec-Fetch-Site headers, with which a browser describes the page that sends a request."""
    return headers.get("Origin"), headers.get("Sec-Fetch-Site")


async def _streamed(
    request: web.BaseRequest, response: web.StreamResponse, parts: AsyncGenerator[bytes, None]
) -> web.StreamResponse:
    async with contextlib.aclosing(parts):
        # Before other code can remove the content: the stream holds the content from its first part on.
        part = await anext(parts, b"")
        await response.prepare(request)
        try:
            while part:
                async with asyncio.timeout(BODY_SECONDS):
                    await response.write(part)
                part = await anext(parts, b"")
            await response.write_eof()
        except ConnectionError:
            pass  # the client has disconnected
        except TimeoutError:  # the client reads no more
            if request.transport is not None:
                request.transport.abort()
    return response


async def _answer(service: AnyService, request: web.BaseRequest, request_id: str) -> Answer:
    try:
        call = await _call(service, request)
        return await (service.answer(call) if call.method != "DELETE" else _deleted(service, call))
    except StorageError as error:
        return _failure(service, error, request_id)
    except web.HTTPException:  # the body did not arrive in time
        raise
    except (ConnectionError, web.RequestPayloadError):  # the client has disconnected, or its body is malformed
        return _failure(service, invalid_input("The request's body did not come as it was announced."), request_id)
    except Exception as error:  # outermost: the client gets an answer, and the log the traceback
        if is_full(error):
            log.warning("the disk is full: %s %s", request.method, request.path)
            return _failure(service, disk_full(service.state), request_id)
        log.exception("%s %s", request.method, request.path)
        sentence = "The server encountered an internal error. Please retry the request."
        return _failure(service, StorageError(500, "InternalError", sentence), request_id)


async def _deleted(service: AnyService, call: Call) -> Answer:
    """Answer a deletion. A deletion needs some disk space; on a full disk the reserved space is freed, and the
    deletion is repeated."""
    try:
        return await service.answer(call)
    except (OSError, sqlite3.OperationalError) as error:
        if not (is_full(error) and service.reserve and service.reserve.spend()):
            raise
        return await service.answer(call)


def _failure(service: AnyService, error: StorageError, request_id: str) -> Answer:
    answer = service.failure(error, f"RequestId:{request_id}\nTime:{http_date(time.time())}")
    return replace(answer, headers={**answer.headers, "x-ms-error-code": error.code})


async def _call(service: AnyService, request: web.BaseRequest) -> Call:
    path, _, query = request.raw_path.partition("?")
    asked, headers = parse_query(query), request.headers
    account = service.account_at(headers.get("Host", ""))
    call = Call(
        request.method,
        f"/{account}{path}" if account else path,
        asked,
        headers,
        b"",
        secure=request.secure,
        at_host=bool(account),
        client=request.remote or "",
        backslashes=service.backslashes,
    )
    if not request.body_exists:
        return call
    if headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if service.streams(request.method, asked) and (request.content_length or LONG) >= LONG:
        return replace(call, stream=_body(request))
    try:
        return replace(call, body=await read_body(request))
    except web.HTTPRequestEntityTooLarge:
        raise too_large(service.largest_body) from None


async def _body(request: web.BaseRequest) -> AsyncIterator[bytes]:
    """Yield the parts of a body. Raises HTTPRequestTimeout if the next part does not arrive within BODY_SECONDS."""
    while True:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                part = await request.content.readany()
        except TimeoutError:
            raise web.HTTPRequestTimeout(text=f"Nothing more came within {BODY_SECONDS:g} s.") from None
        if not part:
            return
        yield part


@contextlib.asynccontextmanager
async def served(
    service: AnyService, host: str, port: int, access_log: TextIO | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve during the block, and yield the port."""
    runner = web.ServerRunner(server(service, access_log), shutdown_timeout=1.0)
    await runner.setup()
    inner = runner.server
    assert inner is not None
    bound = socket.create_server((host, port))
    accepting = await asyncio.get_running_loop().create_server(Doors(inner), sock=bound, ssl=tls)
    purging = asyncio.create_task(_purge(service))
    try:
        yield int(bound.getsockname()[1])
    finally:
        accepting.close()
        purging.cancel()
        await asyncio.gather(purging, return_exceptions=True)
        await runner.cleanup()


async def _purge(service: AnyService) -> None:
    while True:
        try:
            more = service.purge()
            if service.reserve:
                service.reserve.keep()
        except Exception:  # the next round retries
            log.exception("cannot remove what is gone")
            more = False
        await asyncio.sleep(BETWEEN_PURGES if more else PURGE_SECONDS)
