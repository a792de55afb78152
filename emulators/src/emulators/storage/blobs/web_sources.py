"""Sources of copies at other addresses: other accounts, also in Azure, and any other HTTP server.

https://learn.microsoft.com/rest/api/storageservices/put-blob-from-url
"""

from __future__ import annotations

import asyncio

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

from emulators.storage.blobs import headers
from emulators.storage.blobs.extents import Extents, Upload
from emulators.storage.blobs.model import Blob
from emulators.storage.common.calls import VERSION, Call
from emulators.storage.common.errors import StorageError
from emulators.storage.common.naming import metadata

CONNECT_SECONDS, SILENT_SECONDS = 10.0, 60.0
# Request headers that are forwarded to the source, and their names there.
SENT_ON = {
    "x-ms-copy-source-authorization": "Authorization",
    "x-ms-source-range": "Range",
    "x-ms-source-if-match": "If-Match",
    "x-ms-source-if-none-match": "If-None-Match",
    "x-ms-source-if-modified-since": "If-Modified-Since",
    "x-ms-source-if-unmodified-since": "If-Unmodified-Since",
}


async def fetched(extents: Extents, address: str, call: Call) -> tuple[Blob, Upload]:
    """Return the properties and the bytes of a source. Raises StorageError, with the source's status, if the source
    does not answer with its bytes. Redirections are not followed, as in Azure."""
    asked = {name: call.headers[key] for key, name in SENT_ON.items() if key in call.headers}
    asked |= {"x-ms-version": VERSION, "Accept-Encoding": "identity"}
    limits = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)
    try:
        async with (
            ClientSession(timeout=limits, auto_decompress=False, trust_env=True) as session,
            session.get(address, headers=asked, allow_redirects=False) as answer,
        ):
            if answer.status not in (200, 206):
                raise _refused(answer)
            upload = await extents.receive(answer.content.iter_any())
            return _properties(answer, upload), upload
    except (ClientError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
        sentence = f"The source of the copy can't be read: {type(error).__name__}."
        raise StorageError(400, "CannotVerifyCopySource", sentence) from error


def _refused(answer: ClientResponse) -> StorageError:
    code = answer.headers.get("x-ms-error-code", "")
    told = {"x-ms-copy-source-status-code": str(answer.status)} | (
        {"x-ms-copy-source-error-code": code} if code else {}
    )
    status = answer.status if 400 <= answer.status < 500 else 400
    return StorageError(status, "CannotVerifyCopySource", f"The source answered {answer.status} {code}.", headers=told)


def _properties(answer: ClientResponse, upload: Upload) -> Blob:
    """Return the facts of a block blob with the source's content headers and metadata."""
    found = {name: answer.headers[name] for name in headers.CONTENT if name in answer.headers and name != "Content-MD5"}
    return Blob("BlockBlob", size=upload.size, headers=found, metadata=metadata(answer.headers))
