"""The few storage requests of Event Grid, on one connection pool and with one shared access signature.

This module does not use the storage SDK. Importing the SDK takes longer than the rest of Event Grid, and each SDK
request takes several times as long, which matters for a drop of 10,000 blobs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

import aiohttp
from yarl import URL

from emulators.eventgrid.accesslog import BlobFacts

# Azurite closes a connection after 5 idle seconds. We close it earlier, so that no request uses a closed connection.
KEEP_ALIVE_SECONDS = 3.0
TIMEOUT = aiohttp.ClientTimeout(total=30)


@dataclass(frozen=True)
class Account:
    """A storage account: the name, the key, and the endpoints of blobs and queues."""

    name: str
    key: str = field(repr=False)
    blob: str
    queue: str


def account(connection_string: str) -> Account:
    """Parse a connection string with endpoints, as emulators have them. Raises ValueError for a missing part."""
    parts = dict(part.split("=", 1) for part in connection_string.split(";") if part)
    try:
        return Account(parts["AccountName"], parts["AccountKey"], parts["BlobEndpoint"], parts["QueueEndpoint"])
    except KeyError as missing:
        raise ValueError(f"storage.connection_string has no {missing.args[0]}") from None


def signature(account: Account) -> str:
    """Return a shared access signature for blobs and queues, to read, write, add and create, with no practical end.
    The text to sign is described in Microsoft's "Create an account SAS". Its empty lines are start, IP range and
    encryption scope."""
    version, services, types, permissions, end = "2022-11-02", "bq", "sco", "rwac", "2099-01-01T00:00:00Z"
    lines = [account.name, permissions, services, types, "", end, "", "", version, "", ""]
    digest = hmac.new(base64.b64decode(account.key), "\n".join(lines).encode(), hashlib.sha256).digest()
    query = {"sv": version, "ss": services, "srt": types, "sp": permissions, "se": end}
    return urlencode({**query, "sig": base64.b64encode(digest).decode()})


class Storage:
    """Requests to one account. Statuses are returned, not raised. A missing answer raises
    aiohttp.ClientError/TimeoutError."""

    def __init__(self, account: Account) -> None:
        self.account = account
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector, timeout=TIMEOUT)
        self._signature = signature(account)

    async def close(self) -> None:
        await self._session.close()

    async def blob_facts(self, path: str) -> BlobFacts | None:
        """Return the properties of the blob at `path` (encoded, with the account), or None if storage does not
        return them."""
        url = self.account.blob.removesuffix("/" + self.account.name) + path
        async with self._session.head(self._signed(url)) as answer:
            if answer.status != 200:
                return None
            headers = answer.headers
            return BlobFacts(
                headers["ETag"],
                headers.get("Content-Type", "application/octet-stream"),
                int(headers.get("Content-Length", 0)),
                headers.get("x-ms-blob-type", "BlockBlob"),
            )

    async def put_message(self, queue: str, text: str, seconds_to_live: int) -> int:
        url = self._signed(f"{self.account.queue}/{queue}/messages", f"messagettl={seconds_to_live}&")
        body = f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>"
        async with self._session.post(url, data=body.encode()) as answer:
            await answer.read()
            return answer.status

    async def make(self, queue: str = "", container: str = "") -> int:
        """Create a queue or a container if it does not exist. Returns the status of the answer."""
        url = f"{self.account.queue}/{queue}" if queue else f"{self.account.blob}/{container}"
        async with self._session.put(self._signed(url, "" if queue else "restype=container&")) as answer:
            await answer.read()
            return answer.status

    async def put_blob(self, container: str, name: str, content: bytes) -> int:
        headers = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/json"}
        url = self._signed(f"{self.account.blob}/{container}/{quote(name)}")
        async with self._session.put(url, data=content, headers=headers) as answer:
            await answer.read()
            return answer.status

    async def leave_mark(self, mark: str) -> None:
        """Send a request whose line in the access log contains `mark`. The answer is ignored."""
        async with self._session.get(URL(f"{self.account.blob}/?{mark}", encoded=True)) as answer:
            await answer.read()

    def _signed(self, url: str, query: str = "") -> URL:
        return URL(f"{url}?{query}{self._signature}", encoded=True)
