"""Conditional headers of blob requests.

https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from emulators.storage.blobs.tag_query import Condition, condition
from emulators.storage.common.errors import StorageError, invalid_header

ANY = "*"
ETAG = re.compile(r"[^,\x00-\x1f]+")  # one: a list gets 400, as Azure documents
Read = TypeVar("Read")
NO_TAGS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Conditions:
    """The conditions of a request on a blob or container. Etags are without quotes; times are whole Unix seconds."""

    match: str | None = None
    none_match: str | None = None
    modified_since: float | None = None
    unmodified_since: float | None = None
    tags: Condition | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str], prefix: str = "") -> Conditions:
        """Read the conditions of a request. `x-ms-source-` is the prefix of the conditions on the source of a copy."""
        return cls(
            _etag(headers, f"{prefix}If-Match"),
            _etag(headers, f"{prefix}If-None-Match"),
            _read(headers, f"{prefix}If-Modified-Since", _seconds),
            _read(headers, f"{prefix}If-Unmodified-Since", _seconds),
            _read(headers, f"{prefix or 'x-ms-'}if-tags", condition),
        )

    def allow_read(self, etag: str, modified: float, tags: Mapping[str, str]) -> None:
        """Return if the conditions hold. Raises StorageError: 304 if the reader already has this version, otherwise
        412."""
        self._check_tags(tags)
        if self.match not in (None, ANY, etag) or (
            self.match is None and self.unmodified_since is not None and int(modified) > self.unmodified_since
        ):
            raise not_met()
        if self.none_match == ANY:
            raise StorageError(400, "UnsatisfiableCondition", "The request includes an unsatisfiable condition.")
        has_it = self.none_match is None and self.modified_since is not None and int(modified) <= self.modified_since
        if self.none_match == etag or has_it:
            raise StorageError(304, "ConditionNotMet", "The condition specified was not met.")

    def allow_write(self, etag: str | None, modified: float = 0.0, tags: Mapping[str, str] = NO_TAGS) -> None:
        """Return if the conditions hold. Without an etag the blob does not exist yet. Raises StorageError, 409 or
        412."""
        self._check_tags(tags)
        if etag is None:
            if self.match is not None:
                raise not_met()
            return
        if self.none_match == ANY:
            raise StorageError(409, "BlobAlreadyExists", "The specified blob already exists.")
        unmet = self.none_match == etag or self.match not in (None, ANY, etag)
        if self.none_match is None and self.match is None:
            since, until = self.modified_since, self.unmodified_since
            unmet = (since is not None and int(modified) <= since) or (until is not None and int(modified) > until)
        if unmet:
            raise not_met()

    def _check_tags(self, tags: Mapping[str, str]) -> None:
        if self.tags is not None and not self.tags.holds(tags):
            raise not_met()


def not_met(code: str = "ConditionNotMet") -> StorageError:
    return StorageError(412, code, "The condition specified using HTTP conditional header(s) is not met.")


def _etag(headers: Mapping[str, str], name: str) -> str | None:
    text = headers.get(name, "").strip()
    if not text:
        return None
    if not ETAG.fullmatch(text):
        raise invalid_header(name, text)
    return text.removeprefix("W/").strip('"')


def _read(headers: Mapping[str, str], name: str, reader: Callable[[str], Read]) -> Read | None:
    text = headers.get(name)
    try:
        return reader(text) if text else None
    except (ValueError, TypeError, OverflowError) as error:
        raise invalid_header(name, f"{text}: {error}") from None


def _seconds(text: str) -> float:
    return parsedate_to_datetime(text).timestamp()
