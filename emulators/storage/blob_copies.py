"""Copies within the account: a new row on the same bytes, whatever their number.

https://learn.microsoft.com/rest/api/storageservices/copy-blob
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from urllib.parse import urlsplit

from emulators.storage import blob_headers as headers
from emulators.storage.blob_blocks import BlockOperations, block_id
from emulators.storage.blob_desk import Desk, Target, lease_id, split
from emulators.storage.blob_operations import BlobOperations
from emulators.storage.blobs import Content
from emulators.storage.calls import Answer, Call, http_date, parse_query
from emulators.storage.conditions import Conditions, invalid_header
from emulators.storage.errors import StorageError
from emulators.storage.extents import part_of

SOURCE = "x-ms-copy-source"


class CopyOperations:
    def __init__(self, desk: Desk, operations: BlobOperations, blocks: BlockOperations) -> None:
        self._desk = desk
        self._blobs = desk.blobs
        self._operations = operations
        self._blocks = blocks

    def copy(self, call: Call) -> Answer:
        """Copy Blob and Copy Blob From URL. Both are done when they are answered."""
        target = self._desk.writable(call, "w", "c")
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
        content = self._blobs.content(source.container.id, source.name)
        answer = self._operations.written(target, facts, content, status=202)
        told = {"x-ms-copy-id": facts.copy["id"], "x-ms-copy-status": "success"}
        return Answer(202, headers={**answer.headers, **told})

    def put_from_url(self, call: Call) -> Answer:
        """Put Blob From URL: a block blob of the source's bytes, with its headers unless the request has some."""
        target = self._desk.writable(call, "w", "c")
        source = self._source(call)
        facts = self._operations.new(call, "BlockBlob")
        if call.headers.get("x-ms-copy-source-blob-properties", "true").lower() == "true":
            facts = replace(facts, headers={**source.there.headers, **facts.headers})
        content = self._blobs.content(source.container.id, source.name)
        return self._operations.written(target, facts, Content(content.pieces))

    def put_block_from_url(self, call: Call) -> Answer:
        block = block_id(call)
        container = self._blocks.check_block(call, block)
        source = self._source(call)
        content = self._blobs.content(source.container.id, source.name)
        asked = {"x-ms-range": call.headers.get("x-ms-source-range", "")}
        span = headers.byte_range(replace(call, headers=asked), source.there.size)
        pieces = part_of(content.pieces, *(span or (0, source.there.size)))
        self._blobs.stage(container, self._desk.target(call).name, block, pieces)
        return Answer(201, headers={"x-ms-request-server-encrypted": "true"})

    def abort(self, call: Call) -> Answer:
        target = self._desk.writable(call, "w")
        if target.there.copy.get("id") != call.text("copyid"):
            sentence = "The specified copy ID did not match the copy ID for the pending copy operation."
            raise StorageError(409, "CopyIdMismatch", sentence)
        raise StorageError(409, "NoPendingCopyOperation", "There is currently no pending copy operation.")

    def _source(self, call: Call) -> Target:
        """The blob that is to be copied. Raises StorageError, 400, 403, 404 or 412."""
        address = call.headers[SOURCE]
        url = urlsplit(address)
        prefix = f"/{self._desk.account.name}/"
        if url.scheme not in ("http", "https") or not url.path.startswith(prefix):
            if url.scheme in ("http", "https"):
                sentence = f"This emulator copies within its own account, {self._desk.account.name}, alone."
                raise StorageError(404, "CannotVerifyCopySource", sentence)
            raise invalid_header(SOURCE, address.partition("?")[0])
        asked = Call("GET", url.path, parse_query(url.query), {}, b"")
        if "sig" in asked.query:
            self._desk.admit(asked, "r")
        elif "sig" in call.query:  # a signature for the target opens nothing else
            sentence = "The source of a copy under a shared access signature needs one too."
            raise StorageError(403, "CannotVerifyCopySource", sentence)
        source = self._desk.place(*split(asked.resource))
        blob, conditions = source.there, Conditions.of(call.headers, "x-ms-source-")
        blob.lease.admit_read(self._blobs.clock(), lease_id(call, "x-ms-source-lease-id"), "Blob")
        conditions.allow_write(blob.etag, blob.modified)
        return source
