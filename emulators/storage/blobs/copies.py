"""Copies within the account: a new row on the same bytes, whatever their number.

https://learn.microsoft.com/rest/api/storageservices/copy-blob
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from urllib.parse import urlsplit

from emulators.origin import LOCAL_NAMES
from emulators.storage.blobs import headers
from emulators.storage.blobs.blocks import BlockOperations, block_id
from emulators.storage.blobs.conditions import Conditions, invalid_header
from emulators.storage.blobs.extents import part_of
from emulators.storage.blobs.model import Content
from emulators.storage.blobs.operations import BlobOperations
from emulators.storage.blobs.requests import Requests, Target, lease_id
from emulators.storage.common.calls import Answer, Call, http_date, parse_query
from emulators.storage.common.errors import StorageError

SOURCE = "x-ms-copy-source"


class CopyOperations:
    def __init__(self, requests: Requests, operations: BlobOperations, blocks: BlockOperations) -> None:
        self._requests = requests
        self._blobs = requests.blobs
        self._operations = operations
        self._blocks = blocks

    def copy(self, call: Call) -> Answer:
        """Copy Blob and Copy Blob From URL. Both are done when they are answered."""
        target = self._requests.writable(call, "w", "c")
        source = self._source(call)
        blob, copied = source.there, self._blobs.clock()
        facts = replace(
            blob,
            metadata=headers.metadata(call.headers) or blob.metadata,
            tags=headers.tags(call.headers.get("x-ms-tags")),
            tier=headers.tier(call) or blob.tier,
            copy={
                "id": str(uuid.uuid4()),
                "source": call.headers[SOURCE].partition("?")[0],
                "status": "success",
                "progress": f"{blob.size}/{blob.size}",
                "completion-time": http_date(copied),
            },
        )
        content = self._requests.content(source)
        answer = self._operations.written(target, facts, content, status=202)
        told = {"x-ms-copy-id": facts.copy["id"], "x-ms-copy-status": "success"}
        return Answer(202, headers={**answer.headers, **told})

    def put_from_url(self, call: Call) -> Answer:
        """Put Blob From URL: a block blob of the source's bytes, with its headers unless the request has some."""
        target = self._requests.writable(call, "w", "c")
        source = self._source(call)
        facts = self._operations.new(call, "BlockBlob")
        if call.headers.get("x-ms-copy-source-blob-properties", "true").lower() == "true":
            facts = replace(facts, headers={**source.there.headers, **facts.headers})
        content = self._requests.content(source)
        return self._operations.written(target, facts, Content(content.pieces))

    def put_block_from_url(self, call: Call) -> Answer:
        block = block_id(call)
        container = self._blocks.check_block(call, block)
        source = self._source(call)
        content = self._requests.content(source)
        asked = {"x-ms-range": call.headers.get("x-ms-source-range", "")}
        span = headers.byte_range(replace(call, headers=asked), source.there.size)
        pieces = part_of(content.pieces, *(span or (0, source.there.size)))
        self._blobs.stage(container, self._requests.target(call).name, block, pieces)
        return Answer(201, headers={"x-ms-request-server-encrypted": "true"})

    def abort(self, call: Call) -> Answer:
        target = self._requests.writable(call, "w")
        if target.there.copy.get("id") != call.text("copyid"):
            sentence = "The specified copy ID did not match the copy ID for the pending copy operation."
            raise StorageError(409, "CopyIdMismatch", sentence)
        raise StorageError(409, "NoPendingCopyOperation", "There is currently no pending copy operation.")

    def _source(self, call: Call) -> Target:
        """The blob that is to be copied. Raises StorageError, 400, 403, 404 or 412."""
        path, own = self._address(call)
        # Without a signature of its own the source is opened by that of the request, if that is for it too.
        asked = Call("GET", path, own if "sig" in own else {**call.query, **own}, {}, b"", secure=call.secure)
        if "sig" in asked.query:
            try:
                self._requests.admit(asked, "r")
            except StorageError as error:
                sentence = f"The signature does not open the source of the copy: {error.message}"
                raise StorageError(403, "CannotVerifyCopySource", sentence, error.details) from None
        source = self._requests.place(asked)
        blob, conditions = source.there, Conditions.of(call.headers, "x-ms-source-")
        blob.lease.admit_read(self._blobs.clock(), lease_id(call, "x-ms-source-lease-id"), "Blob")
        conditions.allow_write(blob.etag, blob.modified, blob.tags)
        return source

    def _address(self, call: Call) -> tuple[str, dict[str, str]]:
        """The path and query of the source. Raises StorageError, 400, and 404 if it is not of this account."""
        address, host = call.headers[SOURCE], call.headers.get("Host", "")
        try:
            url = urlsplit(address)
            is_here = url.hostname in LOCAL_NAMES and url.port == urlsplit(f"//{host}").port
        except ValueError:
            is_here, url = False, urlsplit("")
        if url.scheme not in ("http", "https") or not address.isprintable():
            raise invalid_header(SOURCE, address.partition("?")[0])
        if not is_here or not url.path.startswith(f"/{self._requests.account.name}/"):
            sentence = f"This emulator copies within its own account, {self._requests.account.name}, alone."
            raise StorageError(404, "CannotVerifyCopySource", sentence)
        return url.path, parse_query(url.query)
