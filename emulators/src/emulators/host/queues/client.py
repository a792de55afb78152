"""A queue client for the host, which sends thousands of a few kinds of requests. It does not use the SDK's pipeline.

An SDK call costs some 3 ms of this process's time, which the real Functions host, not a Python program, does not spend.
Requests have one shared access signature, as in Event Grid. Errors are the SDK's own.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import aiohttp
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
    ServiceRequestError,
)
from azure.storage.queue import QueueMessage
from yarl import URL

KEEP_ALIVE_SECONDS = 30.0  # of an idle connection; a closed connection leaves the pool
TIMEOUT = aiohttp.ClientTimeout(total=30)
TRIES = 3  # the server may close an idle connection at the moment of its use
_ERRORS: dict[int, type[HttpResponseError]] = {404: ResourceNotFoundError, 409: ResourceExistsError}


class Connections:
    """The HTTP session that all queues of a host share, so that few connections are opened. The first request opens
    the session."""

    def __init__(self, requested: Callable[[str], None] = lambda _: None) -> None:
        self.requested = requested  # called for each request
        self._open: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        if self._open is None:
            connector = aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_SECONDS)
            self._open = aiohttp.ClientSession(connector=connector, timeout=TIMEOUT)
        return self._open

    async def close(self) -> None:
        if self._open:
            await self._open.close()
            self._open = None


class LightQueueClient:
    """A client of one queue, for a connection string with an account key and the queue endpoint."""

    def __init__(self, parts: dict[str, str], queue: str, connections: Connections) -> None:
        self._url = f"{parts['QueueEndpoint'].rstrip('/')}/{queue}"
        self._signature = _signature(parts["AccountName"], parts["AccountKey"])
        self._connections = connections

    async def receive_messages(
        self, *, messages_per_page: int, max_messages: int, visibility_timeout: int
    ) -> AsyncIterator[QueueMessage]:
        query = {"numofmessages": min(messages_per_page, max_messages), "visibilitytimeout": visibility_timeout}
        text, _ = await self._send("GET", "/messages", query)
        for found in ElementTree.fromstring(text):  # noqa: S314 (our own storage account)
            yield _message(found)

    async def delete_message(self, message: str, pop_receipt: str | None) -> None:
        await self._send("DELETE", f"/messages/{message}", {"popreceipt": pop_receipt or ""})

    async def update_message(self, message: str, pop_receipt: str | None, *, visibility_timeout: int) -> QueueMessage:
        query = {"popreceipt": pop_receipt or "", "visibilitytimeout": visibility_timeout}
        _, headers = await self._send("PUT", f"/messages/{message}", query)
        updated = QueueMessage()
        updated.id, updated.pop_receipt = message, headers["x-ms-popreceipt"]
        return updated

    async def send_message(self, content: str) -> None:
        body = f"<QueueMessage><MessageText>{escape(content)}</MessageText></QueueMessage>"
        await self._send("POST", "/messages", {}, body)

    async def create_queue(self) -> None:
        await self._send("PUT", "", {})

    async def close(self) -> None:
        """Do nothing, because the host closes the connections. The method exists for compatibility with the SDK's
        client.
        """

    async def _send(self, method: str, path: str, query: dict[str, Any], body: str | None = None) -> tuple[str, Any]:
        self._connections.requested(f"{method} {self._url.rpartition('/')[2]}{path}")
        head = f"{urlencode(query, quote_via=quote)}&" if query else ""
        url = URL(f"{self._url}{path}?{head}{self._signature}", encoded=True)
        for left in reversed(range(TRIES)):
            try:
                async with self._connections.session().request(method, url, data=body) as answer:
                    text = await answer.text()
                    if answer.status >= 400 and not (answer.status >= 500 and left):
                        raise _error(answer.status, answer.headers.get("x-ms-error-code", ""), text)
                    if answer.status < 400:
                        return text, answer.headers
            except (aiohttp.ClientError, TimeoutError) as exc:
                if not left:
                    raise ServiceRequestError(f"{type(exc).__name__}: {exc}") from exc
        raise AssertionError  # the last try returns or raises


def key_parts(connection: str) -> dict[str, str] | None:
    """Return the parts of a connection string, or None if it lacks the account, the key or the queue endpoint."""
    parts = dict(part.split("=", 1) for part in connection.split(";") if "=" in part)
    return parts if {"AccountName", "AccountKey", "QueueEndpoint"} <= parts.keys() else None


def _error(status: int, code: str, text: str) -> HttpResponseError:
    error = _ERRORS.get(status, HttpResponseError)(f"{status} {code}: {text[:300]}")
    error.status_code = status
    return error


def _message(found: ElementTree.Element) -> QueueMessage:
    message = QueueMessage(content=found.findtext("MessageText") or "")
    message.id = found.findtext("MessageId") or ""
    message.inserted_on = _time(found.findtext("InsertionTime"))
    message.expires_on = _time(found.findtext("ExpirationTime"))
    message.next_visible_on = _time(found.findtext("TimeNextVisible"))
    message.pop_receipt = found.findtext("PopReceipt")
    message.dequeue_count = int(found.findtext("DequeueCount") or 0)
    return message


def _time(text: str | None) -> datetime | None:
    return parsedate_to_datetime(text) if text else None


def _signature(account: str, key: str) -> str:
    """Return an account's signature for queues with no practical end. See Microsoft's "Create an account SAS"."""
    version, permissions, end = "2022-11-02", "rwdlacup", "2099-01-01T00:00:00Z"
    lines = [account, permissions, "q", "sco", "", end, "", "", version, "", ""]
    digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
    query = {"sv": version, "ss": "q", "srt": "sco", "sp": permissions, "se": end}
    return urlencode({**query, "sig": base64.b64encode(digest).decode()})
