"""Parts that all blob operations share: authorization, the request's container and blob, and the request's bytes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from urllib.parse import unquote

from emulators.storage.blobs import encryption, headers
from emulators.storage.blobs.access import BlobAccount, split
from emulators.storage.blobs.conditions import ANY, Conditions
from emulators.storage.blobs.crc64 import Crc64
from emulators.storage.blobs.extents import Upload
from emulators.storage.blobs.kept import TIME
from emulators.storage.blobs.model import Blob, Container, Content, rehydrated
from emulators.storage.blobs.store import Blobs
from emulators.storage.common.calls import Call
from emulators.storage.common.errors import StorageError, bad_length, bad_parameter, invalid_header
from emulators.storage.common.naming import checked_name
from emulators.storage.common.rights import Right

CONTAINER_NAME = re.compile(r"\$root|\$logs|\$web|[a-z0-9](?:-?[a-z0-9]){2,62}")
CRC64 = "x-ms-content-crc64"
LONGEST_NAME = 1024
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
GUID = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


@dataclass(frozen=True)
class Target:
    """The current state of the request's blob. `blob` is None if the blob does not exist. `version` is the
    requested previous version."""

    container: Container
    name: str
    blob: Blob | None
    snapshot: str = ""
    version: str = ""

    @property
    def there(self) -> Blob:
        """Return the blob. Raises StorageError, 404, if it does not exist."""
        if self.blob is None:
            raise blob_not_found()
        return self.blob


@dataclass(frozen=True)
class Requests:
    """The account's blobs and the authorization of requests. With `web_sources`, copies may come from anywhere."""

    blobs: Blobs
    account: BlobAccount
    web_sources: bool = False

    def admit(self, call: Call, *any_of: str, kind: str = "o", action: str = "") -> str:
        """Return the signature's permissions if they include one of `any_of`. Raises StorageError, 403 or 401."""
        return self.account.admit(call, Right(kind, any_of, call.resource.partition("/")[0], action)).permissions

    def target(self, call: Call) -> Target:
        """Return the blob of an admitted request. Raises StorageError, 400 and 404."""
        for name in {"snapshot", "versionid"} & call.query.keys():
            sentence = "Snapshots and versions can be read, copied, deleted, tagged, and moved to a tier."
            raise bad_parameter(name, call.query[name], sentence)
        return self.place(call)

    def place(self, call: Call) -> Target:
        """Return the blob, snapshot or version of a request. Raises StorageError, 400 and 404."""
        container, name = split(call.resource)
        if "%" in call.path:
            check_encoding(call.path)
        found = self.blobs.container(checked_container(container))
        checked_blob(name)
        snapshot, version = _checked_time(call, "snapshot"), _checked_time(call, "versionid")
        if snapshot and version:
            raise bad_parameter("versionid", version, "A request names a snapshot or a version, not both.")
        blob = self.blobs.find(found.id, name, snapshot, version)
        if blob is None:
            return Target(found, name, None, snapshot)
        kept = blob.version if blob.previous else ""
        return Target(found, name, rehydrated(blob, self.blobs.clock()), snapshot, kept)

    def content(self, target: Target) -> Content:
        """Return the content of the blob, snapshot or version."""
        return self.blobs.content(target.container.id, target.name, target.snapshot, target.version)

    def readable(self, call: Call, *any_of: str) -> Target:
        """Return the blob of a read request, after checking the permission, the lease and the conditions. Raises
        StorageError."""
        self.admit(call, *any_of)
        target = self.place(call)
        blob = target.there
        blob.lease.admit_read(self.blobs.clock(), lease_id(call), "Blob")
        Conditions.of(call.headers).allow_read(blob.etag, blob.modified, blob.tags)
        return target

    def opened(self, call: Call) -> Target:
        """Return the blob of a request that reads encrypted data. Raises StorageError."""
        target = self.readable(call, "r")
        target.there.encryption.open(encryption.asked_for(call))
        return target

    def writable(self, call: Call, *any_of: str, kept: bool = False) -> Target:
        """Return an existing or new blob that may be written under the request's lease and conditions. With `kept`, it
        may be a snapshot or version. Raises StorageError."""
        permitted = self.admit(call, *any_of)
        target = self.place(call) if kept else self.target(call)
        self.check_write(call, target, creates="c" in any_of)
        if target.blob is not None and "c" in any_of and not {*any_of} - {"c"} & {*permitted}:
            sentence = "This request is not authorized to perform blob overwrites."
            raise StorageError(403, "UnauthorizedBlobOverwrite", sentence)
        return target

    def check_encryption(self, call: Call, target: Target) -> None:
        """Raise StorageError, 409, if a write to the blob lacks the blob's key or encryption scope."""
        target.there.encryption.change(encryption.asked_for(call), target.container.scope)

    def check_write(self, call: Call, target: Target, creates: bool = False) -> None:
        """Raise StorageError, 409 or 412, if the blob's lease or a condition of the request forbids the write.
        `creates`: the write may create the blob."""
        blob, conditions = target.blob, Conditions.of(call.headers)
        if blob is None:
            conditions.allow_write(None)
            if lease_id(call):
                sentence = "There is currently no lease on the blob."
                raise StorageError(412, "LeaseNotPresentWithBlobOperation", sentence)
            return
        lease = lease_id(call)
        blob.lease.admit(self.blobs.clock(), lease, "Blob")
        # As in Azure: the lease's holder knows that the blob exists, and only a write that creates minds `*`
        # (Azurite's WriteConditionalHeadersValidator.ts).
        if (lease or not creates) and conditions.none_match == ANY:
            conditions = replace(conditions, none_match=None)
        conditions.allow_write(blob.etag, blob.modified, blob.tags)

    async def received(self, call: Call) -> Upload:
        """Receive the request's bytes, and check them against the request's hashes. Raises StorageError, 400."""
        given = headers.checked_crc64(call)
        if given and "Content-MD5" in call.headers:
            sentence = "Both x-ms-content-crc64 header and Content-MD5 header are present."
            raise StorageError(400, "BothCrc64AndMd5HeaderPresent", sentence)
        crc = [Crc64()] if given else []
        upload = await self.blobs.extents.receive(call.stream or _once(call.body), *crc)
        headers.check_md5(call, upload, "Content-MD5")
        if crc and crc[0].text != given:
            sentence = "The CRC64 value specified in the request did not match with the CRC64 value calculated by the"
            details = {"UserSpecifiedCrc64": given, "ServerCalculatedCrc64": crc[0].text}
            raise StorageError(400, "Crc64Mismatch", f"{sentence} server.", details)
        return upload


class Operations:
    """Base class of a group of operations."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._blobs = requests.blobs


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def checked_container(name: str) -> str:
    return checked_name(name, CONTAINER_NAME)


def check_encoding(path: str) -> None:
    """Raise StorageError, 400, for a path that is not UTF-8. Decoding would map two such names to one."""
    try:
        unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise StorageError(400, "InvalidUri", "The requested URI is not UTF-8 once it is decoded.") from None


def checked_blob(name: str) -> str:
    if not 1 <= len(name) <= LONGEST_NAME:
        raise bad_length()
    if CONTROL.search(name):
        sentence = "A name may hold no control characters: a listing, which is XML, could not be written."
        raise StorageError(400, "InvalidUri", sentence)
    return name


def _checked_time(call: Call, name: str) -> str:
    """Return the time of the requested snapshot or version, or ''. Raises StorageError, 400."""
    text = call.query.get(name)
    if text is not None and not TIME.fullmatch(text):
        raise bad_parameter(name, text, "It is a time such as 2024-01-31T12:00:00.0000000Z.")
    return text or ""


def lease_id(call: Call, name: str = "x-ms-lease-id") -> str:
    """Return the request's lease id, or ''. Raises StorageError, 400, for an id that is not a GUID."""
    text = call.headers.get(name, "")
    if text and not GUID.fullmatch(text):
        raise invalid_header(name, text)
    return text.lower()


def blob_not_found() -> StorageError:
    return StorageError(404, "BlobNotFound", "The specified blob does not exist.")


def invalid_type() -> StorageError:
    return StorageError(409, "InvalidBlobType", "The blob type is invalid for this operation.")


def not_here(what: str) -> StorageError:
    """Return the error for a feature of Azure that this emulator lacks."""
    return StorageError(501, "FeatureNotSupported", f"This emulator has no {what}; Microsoft's Azurite may.")
