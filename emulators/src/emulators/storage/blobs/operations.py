"""Operations on one blob: put, get, delete, snapshots and properties."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncGenerator
from dataclasses import replace

from emulators.storage.blobs import encryption, headers, page_ranges, pages, xml
from emulators.storage.blobs.access import OVERRIDES
from emulators.storage.blobs.conditions import Conditions
from emulators.storage.blobs.extents import Upload, part_of
from emulators.storage.blobs.leases import Lease
from emulators.storage.blobs.model import Blob, Container, Content
from emulators.storage.blobs.requests import Operations, Target, blob_not_found, lease_id, not_here
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter, invalid_header, missing_header
from emulators.storage.common.naming import as_headers, metadata
from emulators.storage.common.service import XML
from emulators.storage.common.service_xml import HEAD

DELETE_SNAPSHOTS = "x-ms-delete-snapshots"
MOST_HASHED = 4 * 1024 * 1024  # bytes of the largest range with a hash in the answer


class BlobOperations(Operations):
    # Writing

    async def put(self, call: Call) -> Answer:
        """Create a block blob with the request's bytes, an empty append blob, or a page blob of zeros."""
        kind = call.headers.get("x-ms-blob-type")
        target = self._requests.writable(call, "w", "c")
        if target.blob is not None:
            headers.check_online(target.blob)
        if kind is None:
            raise missing_header("x-ms-blob-type")
        if kind not in ("BlockBlob", "AppendBlob", "PageBlob"):
            raise invalid_header("x-ms-blob-type", kind)
        size, facts = pages.new_size(call) if kind == "PageBlob" else 0, self.new(call, kind, target.container)
        upload = await self._requests.received(call)
        if kind != "BlockBlob" and upload.size:
            raise invalid_header("Content-Length", upload.size)
        target = self._requests.writable(call, "w", "c")  # checked again, because the blob may have changed meanwhile
        if kind == "PageBlob":
            return self.written(target, facts, Content(page_ranges.hole(size)))
        if kind == "BlockBlob":  # the others are empty yet: the MD5 is one of what will be written
            headers.check_md5(call, upload, "x-ms-blob-content-md5")
        return self.written(target, facts, upload)

    def new(self, call: Call, kind: str, container: Container) -> Blob:
        """Return the facts in the request about the new blob, which replaces the existing one."""
        found = headers.content_headers(call.headers, plain=call.text("comp") != "blocklist")
        is_paged, how = kind == "PageBlob", encryption.asked_for(call)
        how = encryption.of_new(how, container.scope, container.scope_fixed)
        if is_paged and "x-ms-access-tier" in call.headers:
            raise not_here("tiers of page blobs, which are those of premium accounts")
        return Blob(
            kind,
            headers=found,
            metadata=metadata(call.headers),
            tags=headers.tags(call.headers.get("x-ms-tags")),
            tier=headers.tier(call),
            key=how.key,
            scope=how.scope,
            sequence=(pages.sequence_number(call) or 0) if is_paged else 0,
        )

    def written(self, target: Target, facts: Blob, content: Content | Upload, status: int = 201) -> Answer:
        """Write the blob with a new etag, and return the answer."""
        if isinstance(content, Upload):
            size = content.size
            if facts.kind == "BlockBlob":
                facts = replace(facts, headers={**facts.headers, "Content-MD5": headers.as_md5(content.md5)})
        else:
            size = sum(piece[2] for piece in content.pieces)
        now, old = self._blobs.clock(), target.blob
        lease = old.lease if old and old.lease.held(now) else Lease()
        created = old.created if old else now
        etag = self._blobs.new_etag()
        made = replace(facts, size=size, etag=etag, created=created, modified=now, lease=lease, snapshot="")
        made = replace(made, version=self._blobs.new_version(), previous=False)
        keeps = old is not None and old.version != made.version
        self._blobs.write(target.container.id, target.name, made, content, keeps)
        md5 = {name: value for name, value in made.headers.items() if name == "Content-MD5"}
        return Answer(status, headers={**headers.version(made), **md5, "x-ms-request-server-encrypted": "true"})

    def changed(self, target: Target, blob: Blob) -> dict[str, str]:
        """Write the blob's changed facts with a new etag, and return the headers that report the etag."""
        made = replace(blob, etag=self._blobs.new_etag(), modified=self._blobs.clock())
        self._blobs.change(target.container.id, target.name, made, keeps=made.version != target.there.version)
        return headers.version(made)

    # Reading

    async def get(self, call: Call) -> Answer:
        target = self._requests.opened(call)
        blob = target.there
        headers.check_online(blob)
        content = self._requests.content(target)
        found = {**headers.properties(blob, self._blobs.clock()), **headers.tier_of(blob)}
        asked = headers.byte_range(call, blob.size)
        begin, length = asked or (0, blob.size)
        if asked:
            found["Content-Range"] = f"bytes {begin}-{begin + length - 1}/{blob.size}"
            found.pop("Content-MD5", None)
        if "Content-MD5" in blob.headers:
            found["x-ms-blob-content-md5"] = blob.headers["Content-MD5"]
        found |= _overrides(call)
        pieces = part_of(content.pieces, begin, length)
        found["Content-Length"] = str(length)
        if call.headers.get("x-ms-range-get-content-md5", "").lower() == "true":
            return await self._hashed(found, asked, self._blobs.extents.read(pieces))
        status, body = 206 if asked else 200, self._blobs.extents.at_once(pieces)
        if body is not None:
            return Answer(status, body, found)
        return Answer(status, headers=found, stream=self._blobs.extents.read(pieces))

    async def _hashed(
        self, found: dict[str, str], asked: tuple[int, int] | None, parts: AsyncGenerator[bytes, None]
    ) -> Answer:
        if asked is None or asked[1] > MOST_HASHED:
            sentence = "A range of at most 4 MiB can be asked for with its hash."
            raise StorageError(400, "InvalidHeaderValue", sentence)
        async with contextlib.aclosing(parts):
            body = b"".join([part async for part in parts])
        digest = hashlib.md5(body, usedforsecurity=False).digest()
        return Answer(206, body, {**found, "Content-MD5": headers.as_md5(digest)})

    def head(self, call: Call) -> Answer:
        blob = self._requests.opened(call).there
        facts = {**headers.properties(blob, self._blobs.clock()), **headers.tier_of(blob)}
        return Answer(200, headers={**facts, **_overrides(call), "Content-Length": str(blob.size)})

    # Properties

    def metadata(self, call: Call) -> Answer:
        blob = self._requests.opened(call).there
        return Answer(200, headers={**headers.version(blob), **as_headers(blob.metadata)})

    def set_metadata(self, call: Call) -> Answer:
        target = self._requests.writable(call, "w")
        self._requests.check_encryption(call, target)
        blob = replace(target.there, metadata=metadata(call.headers), version=self._blobs.new_version())
        return Answer(200, headers={**self.changed(target, blob), "x-ms-request-server-encrypted": "true"})

    def set_properties(self, call: Call) -> Answer:
        """Replace all content headers, and a page blob's size and sequence number.

        Headers that the request does not name are removed, unless it names none of them.
        """
        target = self._requests.writable(call, "w")
        blob, found = target.there, headers.content_headers(call.headers, plain=False)
        of_pages = any(name in call.headers for name in ("x-ms-blob-content-length", pages.ACTION, pages.SEQUENCE))
        if found or not of_pages:
            version = self._blobs.new_version() if blob.kind == "BlockBlob" else blob.version
            blob = replace(blob, headers={"Content-Type": "", **found}, version=version)
        if not of_pages:
            told = {pages.SEQUENCE: str(blob.sequence)} if blob.kind == "PageBlob" else {}
            return Answer(200, headers={**self.changed(target, blob), **told})
        pages.check_kind(blob)
        size = pages.checked_size(call)
        made = replace(
            blob,
            size=blob.size if size is None else size,
            sequence=pages.renumbered(call, blob.sequence),
            etag=self._blobs.new_etag(),
            modified=self._blobs.clock(),
        )
        self._blobs.resize(target.container.id, target.name, made)
        return Answer(200, headers={**headers.version(made), pages.SEQUENCE: str(made.sequence)})

    def set_tier(self, call: Call) -> Answer:
        target = self._requests.writable(call, "w", kept=True)
        wanted = headers.tier(call)
        if not wanted:
            raise missing_header("x-ms-access-tier")
        if target.there.kind != "BlockBlob":
            raise StorageError(409, "InvalidBlobType", "The access tier is that of block blobs alone.")
        blob = headers.retiered(
            target.there, wanted, call.headers.get("x-ms-rehydrate-priority", ""), self._blobs.clock()
        )
        self._blobs.change(target.container.id, target.name, blob)
        return Answer(202 if blob.rehydrating else 200)

    def tags(self, call: Call) -> Answer:
        blob = self._requests.readable(call, "t").there
        Conditions.of(call.headers, "x-ms-blob-").allow_write(blob.etag, blob.modified)
        return Answer(200, f"{HEAD}{xml.tags(blob.tags)}".encode(), XML)

    def set_tags(self, call: Call) -> Answer:
        self._requests.admit(call, "t")
        target = self._requests.place(call)
        blob = target.there
        self._requests.check_write(call, target)
        Conditions.of(call.headers, "x-ms-blob-").allow_write(blob.etag, blob.modified)
        tags = headers.checked_tags(xml.read_tags(call.body))
        self._blobs.change(target.container.id, target.name, replace(blob, tags=tags))
        return Answer(204)

    def snapshot(self, call: Call) -> Answer:
        """Take a snapshot of the blob. The blob's lease is not required. If the account has versions, the blob gets
        a new version."""
        self._requests.admit(call, "w", "c")
        target = self._requests.target(call)
        blob, own = target.there, metadata(call.headers)
        blob.lease.admit_read(self._blobs.clock(), lease_id(call), "Blob")
        Conditions.of(call.headers).allow_write(blob.etag, blob.modified, blob.tags)
        self._requests.check_encryption(call, target)
        if own:
            blob = replace(blob, metadata=own, etag=self._blobs.new_etag(), modified=self._blobs.clock())
        made = self._blobs.create_snapshot(target.container.id, target.name, blob)
        told = {"x-ms-snapshot": made.snapshot, "x-ms-request-server-encrypted": "true"}
        if version := self._blobs.new_version():
            self._blobs.change(target.container.id, target.name, replace(target.there, version=version), keeps=True)
            told["x-ms-version-id"] = version
        return Answer(201, headers={**headers.version(made), **told})

    def delete(self, call: Call) -> Answer:
        """Delete a snapshot, a version, a blob, a blob with its snapshots, or all snapshots of a blob."""
        self._requests.admit(call, "x" if "versionid" in call.query else "d")
        target = self._requests.place(call)
        if target.blob is None:
            raise blob_not_found()
        key, which = (target.container.id, target.name), _snapshots_to_delete(call)
        self._requests.check_write(call, target)
        Conditions.of(call.headers, "x-ms-access-tier-").allow_write(target.blob.etag, target.blob.tier_set)
        if target.snapshot:
            self._blobs.delete_snapshots(*key, target.snapshot)
        elif target.version:
            self._blobs.delete_version(*key, target.version)
        elif which == "only":
            self._blobs.delete_snapshots(*key)
        elif not which and self._blobs.has_snapshots(*key):
            sentence = "This operation is not permitted while the blob has snapshots."
            raise StorageError(409, "SnapshotsPresent", sentence)
        else:
            keeps = self._blobs.versioning or bool(target.blob.version)
            self._blobs.delete(*key, keeps=keeps and "versionid" not in call.query)
        return Answer(
            202, headers={"x-ms-delete-type-permanent": str(not self._blobs.history.retention_days > 0).lower()}
        )

    def undelete(self, call: Call) -> Answer:
        """Restore a deleted blob and its deleted snapshots."""
        self._requests.admit(call, "w")
        target = self._requests.target(call)
        if not self._blobs.undelete(target.container.id, target.name):
            raise blob_not_found()
        return Answer(200)


def _overrides(call: Call) -> dict[str, str]:
    """Return the response headers that the signature sets. Raises StorageError, 400, for a value with control
    characters."""
    found = {name: call.text(key) for key, name in OVERRIDES.items() if call.text(key) and "sig" in call.query}
    for key, name in OVERRIDES.items():
        if not found.get(name, "").isprintable():
            raise bad_parameter(key, call.text(key), "A header has no control characters.")
    return found


def _snapshots_to_delete(call: Call) -> str:
    """Return `include`, `only` or ''. Raises StorageError, 400."""
    which = call.headers.get(DELETE_SNAPSHOTS, "").lower()
    if which not in ("", "include", "only") or (which and {"snapshot", "versionid"} & call.query.keys()):
        raise invalid_header(DELETE_SNAPSHOTS, which)
    return which
