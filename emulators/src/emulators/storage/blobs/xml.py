"""The XML bodies of the blob service.

https://learn.microsoft.com/rest/api/storageservices/list-blobs
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from emulators.storage.blobs.encryption import ACCOUNT_KEY
from emulators.storage.blobs.headers import OCTETS, SMART, pending
from emulators.storage.blobs.leases import FOR_EVER, Lease
from emulators.storage.blobs.model import Blob, Block, Container, Listed, rehydrated
from emulators.storage.blobs.page_ranges import Range
from emulators.storage.blobs.tags import Found
from emulators.storage.common.calls import http_date
from emulators.storage.common.errors import StorageError, bad_xml
from emulators.storage.common.service_xml import HEAD, listing, pairs, parsed, text_of

MOST_BLOCKS = 50_000
DAY = 24 * 3600
UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # for an XML document


@dataclass(frozen=True)
class Page:
    """One page of a list: the endpoint and parameters of the request, the included parts, and the marker of the
    next page."""

    endpoint: str
    asked: Mapping[str, str]
    includes: frozenset[str]
    now: float
    following: str


def _name(name: str) -> str:
    """Return the Name element. A name that XML can't represent is percent-encoded."""
    return f'<Name Encoded="true">{quote(name)}</Name>' if UNFIT.search(name) else f"<Name>{text_of(name)}</Name>"


def _list(page: Page, attributes: str, tag: str, entries: Iterable[str]) -> bytes:
    return listing(page.endpoint, page.asked, f"<{tag}>{''.join(entries)}</{tag}>", page.following, attributes)


def containers(page: Page, found: Iterable[Container]) -> bytes:
    return _list(page, "", "Containers", (_container(one, page) for one in found))


def _container(one: Container, page: Page) -> str:
    facts = (
        f"<Last-Modified>{http_date(one.modified)}</Last-Modified><Etag>&quot;{one.etag}&quot;</Etag>"
        f"{_lease(one.lease, page.now)}"
        f"{f'<PublicAccess>{one.public}</PublicAccess>' if one.public else ''}"
        "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>"
        "<ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled>"
        f"<DefaultEncryptionScope>{one.scope or ACCOUNT_KEY}</DefaultEncryptionScope>"
        f"<DenyEncryptionScopeOverride>{str(one.scope_fixed).lower()}</DenyEncryptionScopeOverride>"
    )
    more = pairs("Metadata", one.metadata) if "metadata" in page.includes else ""
    return f"<Container><Name>{one.name}</Name><Properties>{facts}</Properties>{more}</Container>"


def blobs(page: Page, container: str, found: Iterable[Listed]) -> bytes:
    entries = (
        f"<BlobPrefix>{_name(name)}</BlobPrefix>" if blob is None else _blob(name, rehydrated(blob, page.now), page)
        for name, blob in found
    )
    return _list(page, f" ContainerName={quoteattr(container)}", "Blobs", entries)


def found_by_tags(page: Page, keys: Collection[str], found: Iterable[Found]) -> bytes:
    """Return the blobs that a search found, each with its tags among `keys`."""
    entries = (
        f"<Blob>{_name(name)}<ContainerName>{container}</ContainerName>"
        f"{tags({key: value for key, value in own.items() if key in keys})}</Blob>"
        for _, name, container, own in found
    )
    return _list(page, "", "Blobs", entries)


def _blob(name: str, blob: Blob, page: Page) -> str:
    facts = (
        f"<Creation-Time>{http_date(blob.created)}</Creation-Time>"
        f"<Last-Modified>{http_date(blob.modified)}</Last-Modified><Etag>{blob.etag}</Etag>"
        f"<Content-Length>{blob.size}</Content-Length>"
    )
    if blob.created:
        headers = {"Content-Type": OCTETS, **blob.headers}
        facts += "".join(f"<{key}>{text_of(value)}</{key}>" for key, value in headers.items())
    if blob.kind == "PageBlob":
        facts += f"<x-ms-blob-sequence-number>{blob.sequence}</x-ms-blob-sequence-number>"
    facts += f"<BlobType>{blob.kind}</BlobType>"
    if blob.created and blob.kind == "BlockBlob":
        inferred = "" if blob.tier else "<AccessTierInferred>true</AccessTierInferred>"
        facts += f"<AccessTier>{blob.tier or 'Hot'}</AccessTier>{inferred}"
        facts += f"<AccessTierChangeTime>{http_date(blob.tier_set)}</AccessTierChangeTime>" if blob.tier_set else ""
    if blob.rehydrating:
        facts += f"<ArchiveStatus>{pending(blob)}</ArchiveStatus><RehydratePriority>{blob.priority}</RehydratePriority>"
    if blob.tags:
        facts += f"<TagCount>{len(blob.tags)}</TagCount>"
    facts += f"{_lease(blob.lease, page.now)}<ServerEncrypted>true</ServerEncrypted>"
    facts += f"<CustomerProvidedKeySha256>{blob.key}</CustomerProvidedKeySha256>" if blob.key else ""
    facts += f"<EncryptionScope>{blob.scope}</EncryptionScope>" if blob.scope else ""
    facts += "<Sealed>true</Sealed>" if blob.sealed else ""
    if "copy" in page.includes:
        facts += "".join(f"<{_copy_tag(key)}>{text_of(value)}</{_copy_tag(key)}>" for key, value in blob.copy.items())
    facts += "<SmartAccessTier>Hot</SmartAccessTier>" if blob.tier == SMART else ""
    more = pairs("Metadata", blob.metadata) if "metadata" in page.includes else ""
    if "tags" in page.includes and blob.tags:
        more += tags(blob.tags)
    when = f"<Snapshot>{blob.snapshot}</Snapshot>" if blob.snapshot else ""
    if blob.version:
        current = "" if blob.previous else "<IsCurrentVersion>true</IsCurrentVersion>"
        when += f"<VersionId>{blob.version}</VersionId>{current}"
    if blob.deleted:
        when += "<Deleted>true</Deleted>"
        days = max(0, math.ceil((blob.until - page.now) / DAY) - 1)
        facts += f"<DeletedTime>{http_date(blob.deleted)}</DeletedTime>"
        facts += f"<RemainingRetentionDays>{days}</RemainingRetentionDays>"
    more += "<HasVersionsOnly>true</HasVersionsOnly>" if blob.alone else ""
    return f"<Blob>{_name(name)}{when}<Properties>{facts}</Properties>{more}</Blob>"


def _copy_tag(key: str) -> str:
    return "Copy" + "".join(part.capitalize() for part in key.split("-"))


def _lease(lease: Lease, now: float) -> str:
    state = lease.state(now)
    status = "locked" if lease.held(now) else "unlocked"
    text = f"<LeaseStatus>{status}</LeaseStatus><LeaseState>{state}</LeaseState>"
    if state == "leased":
        text += f"<LeaseDuration>{'infinite' if lease.duration == FOR_EVER else 'fixed'}</LeaseDuration>"
    return text


def tags(found: Mapping[str, str]) -> str:
    inner = "".join(f"<Tag><Key>{text_of(k)}</Key><Value>{text_of(v)}</Value></Tag>" for k, v in found.items())
    return f"<Tags><TagSet>{inner}</TagSet></Tags>"


def read_tags(body: bytes) -> dict[str, str]:
    root = parsed(body)
    found = root.findall("./TagSet/Tag")
    if root.tag != "Tags":
        raise bad_xml("Tags with a TagSet is expected.")
    return {one.findtext("Key", ""): one.findtext("Value", "") for one in found}


def page_list(ranges: Iterable[Range], following: str) -> bytes:
    """Return the written and cleared ranges of a page blob in order, and the marker of the next page."""
    tags = ((one, "ClearRange" if one.cleared else "PageRange") for one in ranges)
    inner = "".join(f"<{tag}><Start>{one.start}</Start><End>{one.end}</End></{tag}>" for one, tag in tags)
    return f"{HEAD}<PageList>{inner}<NextMarker>{following}</NextMarker></PageList>".encode()


def block_list(committed: Iterable[tuple[str, int]], waiting: Iterable[Block]) -> bytes:
    first = "".join(_block(name, size) for name, size in committed)
    second = "".join(_block(block.id, block.size) for block in waiting)
    parts = f"<CommittedBlocks>{first}</CommittedBlocks><UncommittedBlocks>{second}</UncommittedBlocks>"
    return f"{HEAD}<BlockList>{parts}</BlockList>".encode()


def _block(name: str, size: int) -> str:
    return f"<Block><Name>{name}</Name><Size>{size}</Size></Block>"


def read_block_list(body: bytes) -> list[tuple[str, str]]:
    """Parse a block list into (where to look for the block: Committed, Uncommitted or Latest; block id) pairs.
    Raises StorageError."""
    root = parsed(body)
    found = [(one.tag, (one.text or "").strip()) for one in root]
    if root.tag != "BlockList" or any(kind not in ("Committed", "Uncommitted", "Latest") for kind, _ in found):
        raise bad_xml("BlockList with Committed, Uncommitted and Latest is expected.")
    if len(found) > MOST_BLOCKS:
        raise StorageError(400, "BlockListTooLong", f"The block list may not contain more than {MOST_BLOCKS} blocks.")
    return found
