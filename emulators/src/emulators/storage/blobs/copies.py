"""A copy within the account is a new row that refers to the same bytes, whatever their number. A copy of any other
source copies the bytes.

https://learn.microsoft.com/rest/api/storageservices/copy-blob
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from urllib.parse import urlsplit

from emulators.origin import LOCAL_NAMES
from emulators.storage.blobs import encryption, headers, web_sources
from emulators.storage.blobs.blocks import BlockOperations, block_id
from emulators.storage.blobs.conditions import Conditions
from emulators.storage.blobs.extents import Upload, part_of
from emulators.storage.blobs.model import Blob, Content
from emulators.storage.blobs.operations import BlobOperations
from emulators.storage.blobs.pages import PageOperations
from emulators.storage.blobs.requests import Operations, Requests, Target, lease_id, not_here
from emulators.storage.common.calls import Answer, Call, http_date, parse_query
from emulators.storage.common.errors import StorageError, invalid_header
from emulators.storage.common.naming import metadata

SOURCE = "x-ms-copy-source"
AUTHORIZATION = "x-ms-copy-source-authorization"
TAGS = "x-ms-copy-source-tag-option"


class CopyOperations(Operations):
    def __init__(
        self, requests: Requests, operations: BlobOperations, blocks: BlockOperations, pages: PageOperations
    ) -> None:
        super().__init__(requests)
        self._operations = operations
        self._blocks = blocks
        self._pages = pages

    async def copy(self, call: Call) -> Answer:
        """Copy Blob and Copy Blob From URL. Both copies are complete before the answer."""
        target = self._requests.writable(call, "w", "c")
        at_once = call.headers.get("x-ms-requires-sync", "").lower() == "true"
        blob, content = await self._opened(call, own_signature=at_once)
        tier, now = headers.tier(call), self._blobs.clock()
        if at_once or tier in ("", headers.ARCHIVE):  # a copy in another tier rehydrates an archived blob
            headers.check_online(blob)
        await self._checked(call, content)
        target = self._requests.writable(call, "w", "c")  # checked again, because the blob may have changed meanwhile
        how = encryption.of_new(encryption.asked_for(call), target.container.scope, target.container.scope_fixed)
        facts = replace(
            blob,
            key=how.key,
            scope=how.scope,
            sealed=_sealed(call, blob.sealed),
            metadata=metadata(call.headers) or blob.metadata,
            tags=_tags(call, blob.tags),
            tier=tier or blob.tier,
            tier_set=now if tier else 0.0,
            rehydrating="",
            copy={
                "id": str(uuid.uuid4()),
                "source": _without_signature(call.headers[SOURCE]),
                "status": "success",
                "progress": f"{blob.size}/{blob.size}",
                "completion-time": http_date(now),
            },
        )
        answer = self._operations.written(target, facts, content, status=202)
        told = {"x-ms-copy-id": facts.copy["id"], "x-ms-copy-status": "success"}
        return Answer(202, headers={**answer.headers, **told})

    async def put_from_url(self, call: Call) -> Answer:
        """Put Blob From URL: create a block blob with the source's bytes. Headers of the request override the
        source's."""
        target = self._requests.writable(call, "w", "c")
        source, content = await self._opened(call)
        headers.check_online(source)
        facts = self._operations.new(call, "BlockBlob", target.container)
        facts = replace(facts, tags=_tags(call, source.tags))
        if call.headers.get("x-ms-copy-source-blob-properties", "true").lower() == "true":
            facts = replace(facts, headers={**source.headers, **facts.headers})
        told = await self._checked(call, content)
        target = self._requests.writable(call, "w", "c")  # checked again, because the blob may have changed meanwhile
        own = content if isinstance(content, Upload) else Content(content.pieces)
        answer = self._operations.written(target, facts, own)
        return replace(answer, headers={**answer.headers, **told})

    async def put_block_from_url(self, call: Call) -> Answer:
        block = block_id(call)
        self._blocks.check_block(call, block)
        content = await self._range(call)
        told = await self._checked(call, content)
        own = content if isinstance(content, Upload) else content.pieces
        return self._blocks.staged(call, block, own, told)

    async def append_from_url(self, call: Call) -> Answer:
        self._blocks.appendable(call)
        content = await self._range(call)
        await self._checked(call, content)
        upload = content if isinstance(content, Upload) else await self._received(content)
        return self._blocks.appended(call, upload)

    async def put_pages_from_url(self, call: Call) -> Answer:
        self._pages.writable(call)
        content = await self._range(call)
        if isinstance(content, Upload):
            raise not_here("pages from other accounts and the web")
        return self._pages.from_source(call, content.pieces, await self._checked(call, content))

    def abort(self, call: Call) -> Answer:
        target = self._requests.writable(call, "w")
        if target.there.copy.get("id") != call.text("copyid"):
            sentence = "The specified copy ID did not match the copy ID for the pending copy operation."
            raise StorageError(409, "CopyIdMismatch", sentence)
        raise StorageError(409, "NoPendingCopyOperation", "There is currently no pending copy operation.")

    async def _opened(self, call: Call, own_signature: bool = True) -> tuple[Blob, Content | Upload]:
        """Return the facts and the bytes of the copy's source. Raises StorageError."""
        if self._is_elsewhere(call):
            return await web_sources.fetched(self._blobs.extents, call.headers[SOURCE], call)
        source = self._source(call, own_signature)
        return source.there, self._requests.content(source)

    def _is_elsewhere(self, call: Call) -> bool:
        """Return whether the source is outside of this account, and the configuration allows such sources."""
        try:
            self._address(call)
        except StorageError as error:
            return error.code == "CannotVerifyCopySource" and self._requests.web_sources
        return False

    async def _range(self, call: Call) -> Content | Upload:
        """Return the source's bytes in the range of the request."""
        if self._is_elsewhere(call):
            return (await self._opened(call))[1]
        source = self._source(call)
        headers.check_online(source.there)
        asked = {"x-ms-range": call.headers.get("x-ms-source-range", "")}
        span = headers.byte_range(replace(call, headers=asked), source.there.size)
        return Content(part_of(self._requests.content(source).pieces, *(span or (0, source.there.size))))

    async def _received(self, content: Content) -> Upload:
        source = self._blobs.extents.read(content.pieces)
        async with contextlib.aclosing(source):
            return await self._blobs.extents.receive(source)

    async def _checked(self, call: Call, content: Content | Upload) -> dict[str, str]:
        """Return the hash header of the source's bytes, if the request has one. Raises StorageError, 400, if it
        differs."""
        if "x-ms-source-content-md5" not in call.headers:
            return {}
        upload = content if isinstance(content, Upload) else await self._received(content)
        headers.check_md5(call, upload, "x-ms-source-content-md5")
        return headers.hashes(call, upload)

    def _source(self, call: Call, own_signature: bool = True) -> Target:
        """Return the blob to copy. Raises StorageError, 400, 401, 403, 404 or 412."""
        path, own = self._address(call)
        # Copy Blob may read the account's own blobs with the request's signature, if the signature covers them.
        query = own if "sig" in own or own_signature else {**call.query, **own}
        token = call.headers.get(AUTHORIZATION, "")
        asked = Call("GET", path, query, {"Authorization": token} if token else {}, b"", secure=call.secure)
        asked = replace(asked, client=call.client, backslashes=call.backslashes)
        if "sig" in query or own_signature:
            try:
                self._requests.admit(asked, "r")
            except StorageError as error:
                told = {"x-ms-copy-source-status-code": str(error.status), "x-ms-copy-source-error-code": error.code}
                raise StorageError(error.status, "CannotVerifyCopySource", error.message, error.details, told) from None
        source = self._requests.place(asked)
        blob, conditions = source.there, Conditions.of(call.headers, "x-ms-source-")
        blob.encryption.open(encryption.asked_for(call, "x-ms-source-"))
        blob.lease.admit_read(self._blobs.clock(), lease_id(call, "x-ms-source-lease-id"), "Blob")
        if not own_signature:
            conditions.allow_write(blob.etag, blob.modified, blob.tags)
            return source
        try:  # the same authorization as for a read, as in Azure
            conditions.allow_read(blob.etag, blob.modified, blob.tags)
        except StorageError as error:
            told = {"x-ms-copy-source-status-code": str(error.status), "x-ms-copy-source-error-code": error.code}
            status = 404 if error.status == 304 or conditions.match else error.status
            raise StorageError(status, "CannotVerifyCopySource", error.message, error.details, told) from None
        return source

    def _address(self, call: Call) -> tuple[str, dict[str, str]]:
        """Return the path and query of the source. Raises StorageError, 400, and 404 if the source is not in this
        account."""
        address, host = call.headers[SOURCE], call.headers.get("Host", "")
        account = self._requests.account.name
        try:
            url = urlsplit(address)
            name = url.hostname or ""
            is_here = name in LOCAL_NAMES and url.port == urlsplit(f"//{host}").port
        except ValueError:
            is_here, name, url = False, "", urlsplit("")
        if url.scheme not in ("http", "https") or not address.isprintable():
            raise invalid_header(SOURCE, address.partition("?")[0])
        if name in (f"{account}.blob.localhost", f"{account}.blob.core.windows.net"):
            return f"/{account}{url.path}", parse_query(url.query)
        if not is_here or not url.path.startswith(f"/{account}/"):
            sentence = f"This emulator copies within its own account, {account}, unless `web_sources` is configured."
            raise StorageError(404, "CannotVerifyCopySource", sentence)
        return url.path, parse_query(url.query)


def _tags(call: Call, of_source: dict[str, str]) -> dict[str, str]:
    """Return the request's tags, or with the option COPY the source's tags. Raises StorageError, 400, for both."""
    option, own = call.headers.get(TAGS, "REPLACE").upper(), call.headers.get("x-ms-tags")
    if option not in ("COPY", "REPLACE") or (option == "COPY" and own):
        raise invalid_header(TAGS, option)
    return of_source if option == "COPY" else headers.tags(own)


def _sealed(call: Call, source: bool) -> bool:
    """Return whether the copy is sealed: as the request says, otherwise as the source is. Raises StorageError, 400."""
    text = call.headers.get("x-ms-seal-blob", str(source)).lower()
    if text not in ("true", "false"):
        raise invalid_header("x-ms-seal-blob", text)
    return text == "true"


def _without_signature(address: str) -> str:
    """Return the source's address as the client sent it, with only the snapshot or version of its query."""
    place, _, query = address.partition("?")
    kept = [one for one in query.split("&") if one.startswith(("snapshot=", "versionid="))]
    return f"{place}?{'&'.join(kept)}" if kept else place
