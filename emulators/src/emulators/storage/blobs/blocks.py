"""Operations on block blobs, whose blocks are committed as a list, and on append blobs.

https://learn.microsoft.com/rest/api/storageservices/put-block-list
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import replace

from emulators.storage.blobs import encryption, headers, xml
from emulators.storage.blobs.conditions import Conditions, not_met
from emulators.storage.blobs.extents import Piece, Upload
from emulators.storage.blobs.leases import Lease
from emulators.storage.blobs.model import Block, Container, Content
from emulators.storage.blobs.operations import BlobOperations
from emulators.storage.blobs.requests import Operations, Requests, Target, blob_not_found, invalid_type, lease_id
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter, invalid_header, mismatch, out_of_range
from emulators.storage.common.service import XML

LONGEST_ID = 64
MOST_APPENDED = 50_000


class BlockOperations(Operations):
    def __init__(self, requests: Requests, operations: BlobOperations) -> None:
        super().__init__(requests)
        self._operations = operations

    async def put_block(self, call: Call) -> Answer:
        """Store an uncommitted block."""
        block = block_id(call)
        self.check_block(call, block)
        upload = await self._requests.received(call)
        return self.staged(call, block, upload, headers.hashes(call, upload))

    def staged(self, call: Call, block: str, content: Upload | list[Piece], told: dict[str, str]) -> Answer:
        """Stage the request's bytes, or the bytes of another blob, as a block. `told` are hashes for the answer."""
        container = self.check_block(call, block)
        how = encryption.of_new(encryption.asked_for(call), container.scope, container.scope_fixed)
        name = self._requests.target(call).name
        encryption.check_blocks(self._blobs.blocks.encryption(container.id, name), how)
        self._blobs.blocks.put(container.id, name, block, content, encryption.written(how))
        return Answer(201, headers={**told, **how.headers, "x-ms-request-server-encrypted": "true"})

    def check_block(self, call: Call, block: str) -> Container:
        """Return the container if the blob can have this block. Raises StorageError."""
        permitted = self._requests.admit(call, "w", "c")
        target = self._requests.target(call)
        if target.blob is not None and "w" not in permitted:
            raise mismatch("Permission", "permission")
        check_target(target)
        lease = target.blob.lease if target.blob else Lease()
        lease.admit(self._blobs.clock(), lease_id(call), "Blob")
        staged = self._blobs.blocks.any_id(target.container.id, target.name)
        if staged is not None and len(base64.b64decode(staged)) != len(base64.b64decode(block)):
            raise StorageError(400, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
        return target.container

    def commit(self, call: Call) -> Answer:
        """Commit the blocks of the block list, in its order, as the blob."""
        target = self._requests.writable(call, "w", "c")
        wanted = xml.read_block_list(call.body)
        check_target(target)
        facts = self._operations.new(call, "BlockBlob", target.container)
        committed = self._committed(target.container.id, target.name) if target.blob else {}
        staged = self._blobs.blocks.of(target.container.id, target.name)
        encryption.check_blocks(self._blobs.blocks.encryption(target.container.id, target.name), facts.encryption)
        blocks = [_chosen(kind, name, committed, staged) for kind, name in wanted]
        pieces = [piece for block in blocks for piece in block.pieces]
        content = Content(pieces, [(block.id, block.size) for block in blocks])
        answer = self._operations.written(target, facts, content)
        digest = hashlib.md5(call.body, usedforsecurity=False).digest()
        return replace(answer, headers={**answer.headers, "Content-MD5": headers.as_md5(digest)})

    def _committed(self, container: int, name: str) -> dict[str, Block]:
        content = self._blobs.content(container, name)
        found, pieces = {}, iter(content.pieces)
        for block, size in content.blocks:
            own: list[Piece] = []
            while sum(piece[2] for piece in own) < size:
                own.append(next(pieces))
            found[block] = Block(block, size, own)
        return found

    def block_list(self, call: Call) -> Answer:
        self._requests.admit(call, "r")
        target, kind = self._requests.place(call), call.text("blocklisttype").lower() or "committed"
        if kind not in ("committed", "uncommitted", "all"):
            raise bad_parameter("blocklisttype", kind, "It is committed, uncommitted or all.")
        staged = {} if target.snapshot else self._blobs.blocks.of(target.container.id, target.name)
        if target.blob is None and not staged:
            raise blob_not_found()
        if target.blob and target.blob.kind != "BlockBlob":
            raise invalid_type()
        found = {"x-ms-blob-content-length": str(target.blob.size if target.blob else 0)}
        if target.blob:
            target.blob.lease.admit_read(self._blobs.clock(), lease_id(call), "Blob")
            Conditions.of(call.headers).allow_write(target.blob.etag, target.blob.modified, target.blob.tags)
            found |= headers.version(target.blob)
        made = self._requests.content(target).blocks if target.blob else []
        body = xml.block_list(made if kind != "uncommitted" else (), staged.values() if kind != "committed" else ())
        return Answer(200, body, {**found, **XML})

    async def append(self, call: Call) -> Answer:
        self.appendable(call)
        upload = await self._requests.received(call)
        if not upload.size:
            raise invalid_header("Content-Length", 0)
        return self.appended(call, upload)

    def appended(self, call: Call, upload: Upload) -> Answer:
        """Append the request's bytes, or the bytes of another blob, to the blob."""
        target = self.appendable(call)
        blob, most = target.there, headers.whole_number(call, "x-ms-blob-condition-maxsize")
        if headers.whole_number(call, "x-ms-blob-condition-appendpos") not in (None, blob.size):
            raise not_met("AppendPositionConditionNotMet")
        if most is not None and blob.size + upload.size > most:
            raise not_met("MaxBlobSizeConditionNotMet")
        if blob.appended >= MOST_APPENDED:
            raise StorageError(409, "BlockCountExceedsLimit", f"A blob takes at most {MOST_APPENDED} appends.")
        made = replace(
            blob,
            size=blob.size + upload.size,
            appended=blob.appended + 1,
            etag=self._blobs.new_etag(),
            modified=self._blobs.clock(),
        )
        self._blobs.append(target.container.id, target.name, made, upload)
        told = {"x-ms-blob-append-offset": str(blob.size), "x-ms-blob-committed-block-count": str(made.appended)}
        told |= {"x-ms-request-server-encrypted": "true", **headers.hashes(call, upload)}
        return Answer(201, headers={**headers.version(made), **told})

    def appendable(self, call: Call) -> Target:
        target = self._requests.writable(call, "a", "w")
        if target.there.kind != "AppendBlob":
            raise invalid_type()
        if target.there.sealed:
            sentence = "The specified blob is sealed, and its contents can't be modified unless the blob is re-created"
            raise StorageError(409, "BlobIsSealed", f"{sentence} after a delete.")
        self._requests.check_encryption(call, target)
        return target

    def seal(self, call: Call) -> Answer:
        """Make the append blob read-only. Its metadata and properties can still change."""
        target = self._requests.writable(call, "a", "w")
        if target.there.kind != "AppendBlob":
            raise invalid_type()
        if headers.whole_number(call, "x-ms-blob-condition-appendpos") not in (None, target.there.size):
            raise not_met("AppendPositionConditionNotMet")
        told = self._operations.changed(target, replace(target.there, sealed=True))
        return Answer(200, headers={**told, "x-ms-blob-sealed": "true"})


def block_id(call: Call) -> str:
    """Return the request's block id as it was sent. Raises StorageError, 400, for an id that is not base64 or is
    too long."""
    text = call.query.get("blockid", "")
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad_parameter("blockid", text, "Not a valid base64 string.") from None
    if not 1 <= len(decoded) <= LONGEST_ID:
        raise out_of_range("blockid", text, 1, LONGEST_ID)
    return text


def _chosen(kind: str, name: str, committed: dict[str, Block], staged: dict[str, Block]) -> Block:
    places = {"Committed": [committed], "Uncommitted": [staged], "Latest": [staged, committed]}[kind]
    for place in places:
        if name in place:
            return place[name]
    raise StorageError(400, "InvalidBlockList", "The specified block list is invalid.")


def check_target(target: Target) -> None:
    """Raise StorageError, 409, unless no blob exists at the target, or a block blob that is not archived."""
    if target.blob is not None and target.blob.kind != "BlockBlob":
        raise invalid_type()
    if target.blob is not None:
        headers.check_online(target.blob)
