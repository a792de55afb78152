"""The headers of blob requests and of their answers.

https://learn.microsoft.com/rest/api/storageservices/get-blob
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl

from emulators.storage.blobs.crc64 import Crc64
from emulators.storage.blobs.extents import Upload
from emulators.storage.blobs.leases import FOR_EVER, Lease
from emulators.storage.blobs.model import Blob, Container
from emulators.storage.blobs.tag_query import TAG_NAME, TAG_VALUE
from emulators.storage.common.calls import Call, http_date
from emulators.storage.common.errors import StorageError, invalid_header
from emulators.storage.common.naming import as_headers

# The content's headers in an answer, and the names under which a request sets them.
CONTENT = {
    "Content-Type": "x-ms-blob-content-type",
    "Content-Encoding": "x-ms-blob-content-encoding",
    "Content-Language": "x-ms-blob-content-language",
    "Content-Disposition": "x-ms-blob-content-disposition",
    "Cache-Control": "x-ms-blob-cache-control",
    "Content-MD5": "x-ms-blob-content-md5",
}
OCTETS = "application/octet-stream"
TIERS = ("Hot", "Cool", "Cold", "Smart", "Archive")
ARCHIVE, SMART = "Archive", "Smart"
RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})", re.ASCII)
MOST_TAGS = 10
CRC64 = "x-ms-content-crc64"


def tags(text: str | None) -> dict[str, str]:
    """Read index tags in the format of `x-ms-tags`, which is a query string."""
    return checked_tags(dict(parse_qsl(text or "", keep_blank_values=True)))


def checked_tags(found: dict[str, str]) -> dict[str, str]:
    """Return the tags. Raises StorageError, 400, for too many tags, or for an invalid name or value."""
    if len(found) > MOST_TAGS or not all(TAG_NAME.fullmatch(k) and TAG_VALUE.fullmatch(v) for k, v in found.items()):
        sentence = f"A blob has at most {MOST_TAGS} tags, of 128 and 256 letters, digits, spaces, and + - . / : = _."
        raise StorageError(400, "InvalidTag", sentence)
    return found


def content_headers(headers: Mapping[str, str], plain: bool) -> dict[str, str]:
    """Return the content headers that a request sets, such as Content-Type. With `plain`, the request's own
    Content-Type is used if x-ms-blob-content-type is missing. Raises StorageError for unprintable values."""
    found = {name: value for name, asked in CONTENT.items() if (value := headers.get(asked))}
    if plain and "Content-Type" not in found and (kind := headers.get("Content-Type")):
        found["Content-Type"] = kind
    for name, value in found.items():
        if not value.isprintable():
            raise invalid_header(name, value)
    return found


def check_md5(call: Call, upload: Upload, name: str) -> None:
    """Compare the received bytes with the MD5 in this header. Raises StorageError, 400."""
    given = call.headers.get(name)
    if given is None:
        return
    wanted = _decoded(given)
    if len(wanted) != 16:
        sentence = "The MD5 value specified in the request is invalid. It must be 128 bits and Base64-encoded."
        raise StorageError(400, "InvalidMd5", sentence)
    if wanted != upload.md5:
        sentence = "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
        details = {"UserSpecifiedMd5": given, "ServerCalculatedMd5": as_md5(upload.md5)}
        raise StorageError(400, "Md5Mismatch", sentence, details)


def hashes(call: Call, upload: Upload) -> dict[str, str]:
    """Return the hash headers for received bytes: the CRC-64 if the client sent one, otherwise the MD5, with the
    CRC-64 for few bytes. Azure always returns the CRC-64, which is slow to compute here."""
    if given := call.headers.get(CRC64):
        return {CRC64: given}
    found = {"Content-MD5": as_md5(upload.md5)}
    if upload.data is not None:
        crc = Crc64()
        crc.update(upload.data)
        found[CRC64] = crc.text
    return found


def checked_crc64(call: Call) -> str | None:
    """Return the CRC-64 of the request. Raises StorageError, 400, unless it is eight bytes in base64."""
    given = call.headers.get(CRC64)
    if given is not None and len(_decoded(given)) != 8:
        raise invalid_header(CRC64, given)
    return given


def as_md5(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def tier(call: Call) -> str:
    """Return the access tier that a request sets, or ''."""
    wanted = call.headers.get("x-ms-access-tier", "")
    if wanted and wanted not in TIERS:
        sentence = "The access tier is not supported for this blob type."
        raise StorageError(400, "AccessTierNotSupportedForBlobType", f"{sentence} There are {', '.join(TIERS)}.")
    return wanted


def byte_range(call: Call, size: int) -> tuple[int, int] | None:
    """Return the offset and length of the requested bytes; None for all. Raises StorageError, 416, for a range
    beyond the end."""
    text = call.headers.get("x-ms-range") or call.headers.get("Range")
    match = RANGE.fullmatch(text.strip()) if text else None
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        return None  # as for every invalid range
    begin = int(match[1])
    if begin >= size:
        sentence = "The range specified is invalid for the current size of the resource."
        raise StorageError(416, "InvalidRange", sentence, headers={"Content-Range": f"bytes */{size}"})
    end = min(int(match[2]), size - 1) if match[2] else size - 1
    return begin, end - begin + 1


def whole_number(call: Call, name: str) -> int | None:
    """Return a header's whole number. Raises StorageError, 400, for anything else."""
    text = call.headers.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise invalid_header(name, text)
    return int(text)


def version(of: Blob | Container) -> dict[str, str]:
    """Return the headers with the etag and the time of modification. For a blob, its version and encryption are
    added."""
    found = {"ETag": f'"{of.etag}"', "Last-Modified": http_date(of.modified)}
    if isinstance(of, Blob) and of.version:
        found["x-ms-version-id"] = of.version
    return {**found, **of.encryption.headers} if isinstance(of, Blob) else found


def lease(of: Lease, now: float) -> dict[str, str]:
    state = of.state(now)
    found = {"x-ms-lease-state": state, "x-ms-lease-status": "locked" if of.held(now) else "unlocked"}
    if state == "leased":
        found["x-ms-lease-duration"] = "infinite" if of.duration == FOR_EVER else "fixed"
    return found


def properties(blob: Blob, now: float) -> dict[str, str]:
    """Return the headers with a blob's properties, for an answer with the blob or about it."""
    found = {
        **version(blob),
        "x-ms-creation-time": http_date(blob.created),
        "x-ms-blob-type": blob.kind,
        "Accept-Ranges": "bytes",
        "x-ms-server-encrypted": "true",
        "Content-Type": OCTETS,
        **blob.headers,
        **lease(blob.lease, now),
        **as_headers(blob.metadata),
        **{f"x-ms-copy-{name}": value for name, value in blob.copy.items()},
    }
    if blob.version and not blob.previous:
        found["x-ms-is-current-version"] = "true"
    if blob.tags:
        found["x-ms-tag-count"] = str(len(blob.tags))
    if blob.kind == "PageBlob":
        found["x-ms-blob-sequence-number"] = str(blob.sequence)
    if blob.kind == "AppendBlob":
        found["x-ms-blob-committed-block-count"] = str(blob.appended)
    if blob.sealed:
        found["x-ms-blob-sealed"] = "true"
    return found


def tier_of(blob: Blob) -> dict[str, str]:
    if blob.kind != "BlockBlob":
        return {}
    found = {"x-ms-access-tier": blob.tier or "Hot", "x-ms-access-tier-inferred": "false" if blob.tier else "true"}
    if blob.tier == SMART:
        found["x-ms-smart-access-tier"] = "Hot"
    if blob.tier_set:
        found["x-ms-access-tier-change-time"] = http_date(blob.tier_set)
    if blob.rehydrating:
        found["x-ms-archive-status"] = pending(blob)
        found["x-ms-rehydrate-priority"] = blob.priority
    return found


def pending(blob: Blob) -> str:
    """Return the archive status of a blob that is being rehydrated."""
    return f"rehydrate-pending-to-{blob.rehydrating.lower()}"


def retiered(blob: Blob, wanted: str, priority: str, now: float) -> Blob:
    """Return the blob in another tier. A blob in the archive tier is being rehydrated first."""
    if blob.tier == ARCHIVE and wanted != ARCHIVE:
        return replace(blob, rehydrating=wanted, priority=priority or "Standard", tier_set=now)
    return replace(blob, tier=wanted, rehydrating="", priority="", tier_set=now)


def check_online(blob: Blob) -> None:
    """Raise StorageError, 409, if the blob's content is archived: it can neither be read nor overwritten.

    Azure refuses even blocks for an archived blob: Azure/azure-storage-azcopy#993.
    """
    if blob.tier == ARCHIVE:
        code = "BlobBeingRehydrated" if blob.rehydrating else "BlobArchived"
        raise StorageError(409, code, "This operation is not permitted on an archived blob.")
