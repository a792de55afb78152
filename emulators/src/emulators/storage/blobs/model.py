"""The records of containers and blobs, and their form in the database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from emulators.storage.blobs.encryption import Encryption
from emulators.storage.blobs.extents import Piece
from emulators.storage.blobs.leases import Lease

NONE = Lease()


@dataclass(frozen=True)
class Container:
    """A container. `policies` has its stored access policies, as the XML that set them."""

    id: int
    name: str
    etag: str
    modified: float
    metadata: dict[str, str]
    policies: str = ""
    lease: Lease = NONE
    scope: str = ""  # the default encryption scope of blobs
    scope_fixed: bool = False  # whether blobs must have this scope
    public: str = ""  # the public access: `blob`, `container`, or ''


@dataclass(frozen=True)
class Blob:
    """The facts about a blob. `headers` are the content headers, by their names in an answer. `copy` describes the
    copy that created the blob.

    `snapshot` is the time at which a snapshot was taken, in Azure's format; '' for the blob itself. `version` is the
    time that names the version, if the account has versions. A `previous` version is no longer the current one.
    """

    kind: str
    size: int = 0
    etag: str = ""
    created: float = 0.0
    modified: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    tier: str = ""
    tier_set: float = 0.0
    rehydrating: str = ""  # the new tier of an archived blob during rehydration
    priority: str = ""  # of the rehydration
    appended: int = 0
    sealed: bool = False  # of an append blob: whether appends are refused
    key: str = ""  # the SHA-256 of the client's key, in base64
    scope: str = ""  # the encryption scope
    sequence: int = 0  # of a page blob: its sequence number
    copy: dict[str, str] = field(default_factory=dict)
    lease: Lease = NONE
    snapshot: str = ""
    version: str = ""
    previous: bool = False
    deleted: float = 0.0  # when it was deleted, if it can be restored, and until when
    until: float = 0.0
    alone: bool = False  # in a list: a previous version of a blob without a current one

    @property
    def encryption(self) -> Encryption:
        return Encryption(self.key, self.scope)


@dataclass(frozen=True)
class Content:
    """A blob's bytes, and the id and size of each committed block."""

    pieces: list[Piece] = field(default_factory=list)
    blocks: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """An uncommitted block."""

    id: str
    size: int
    pieces: list[Piece]


REHYDRATION_SECONDS = 60.0  # from Archive to another tier; Azure takes hours


def rehydrated(blob: Blob, now: float) -> Blob:
    """Return the blob in its current tier. A blob that is being rehydrated leaves the archive after some time."""
    if blob.rehydrating and now >= blob.tier_set + REHYDRATION_SECONDS:
        return replace(blob, tier=blob.rehydrating, rehydrating="", priority="")
    return blob


Listed = tuple[str, Blob | None]  # a blob, or a prefix of several


def after(prefix: str) -> str | None:
    """Return the smallest text greater than all texts with this prefix; None if there is none."""
    while prefix:
        last = ord(prefix[-1]) + 1
        if last <= 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if last == 0xD800 else last)
        prefix = prefix[:-1]
    return None


def facts_of(thing: Blob | Container) -> str:
    """Return the facts about a blob or container as JSON, without empty values."""
    facts: dict[str, Any] = {key: value for key, value in vars(thing).items() if value and key not in ("id", "name")}
    lease = facts.pop("lease")
    return json.dumps(facts | ({"lease": asdict(lease)} if lease.id else {}), separators=(",", ":"))


def container_of(number: int, name: str, text: str) -> Container:
    facts = json.loads(text)
    lease = Lease(**facts.pop("lease", {}))
    return Container(number, name, **{"metadata": {}, **facts}, lease=lease)


def blob_of(text: str) -> Blob:
    facts = json.loads(text)
    lease = facts.pop("lease", None)
    return Blob(**facts, lease=Lease(**lease)) if lease else Blob(**facts)


def content_of(text: str) -> Content:
    pieces, blocks = json.loads(text)
    return Content(pieces_of(pieces), [(block, size) for block, size in blocks])


def pieces_of(found: Iterable[list[int]]) -> list[Piece]:
    return [(extent, offset, length) for extent, offset, length in found]
