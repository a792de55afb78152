"""Copy many blobs inside one storage account. The service copies, so the bytes never pass through the app.

This uses the asynchronous Copy Blob. The service lets the caller's key or identity read the source if both blobs are in
one account, so no signed URL is needed (Copy Blob From URL and Put Blob From URL would need one, and the former is
limited to 256 MiB). Small copies are finished when the request returns; others are `pending` and are polled.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError

from shared.adapters.translation import code_of, status_of, translated
from shared.kernel.errors import Unavailable
from shared.kernel.storage import Blob, Copy

if TYPE_CHECKING:
    from azure.storage.blob import BlobProperties, BlobServiceClient

BATCH = 5000  # copies held in memory at a time, and blobs per page of a listing
PATIENCE = 240.0  # seconds for one pending copy; a function on the Consumption plan has 300 in all
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds between polls of a pending copy
_CONNECTIONS = 10  # kept by the SDK; beyond these it opens one per request, discards it, and logs a warning
SOURCE_ETAG = "source_etag"
# The service's codes for a copy that another attempt started or finished after our listing.
_MADE_MEANWHILE = ("PendingCopyOperation", "BlobAlreadyExists", "TargetConditionNotMet")


class Copier:
    """Copies in batches. Before each batch, one listing of the destination's folder finds the existing copies.

    An archive of up to BATCH blobs is listed once, a larger one once per batch. That costs one more request per BATCH
    existing blobs, compared with one request per copy.
    """

    def __init__(self, service: BlobServiceClient, concurrency: int) -> None:
        self._service = service
        self._concurrency = min(concurrency, _CONNECTIONS)

    def run(self, copies: Iterable[Copy]) -> Iterator[Blob]:
        """Make the copies, and yield each completed copy. After a failure, start no more copies and raise the error of
        the failure.

        Raises NotFound if a source no longer exists, Changed if it has another etag than `source.etag`, and Unavailable
        if a copy is still pending after PATIENCE seconds: the copy continues, and the next call waits for it again.
        """
        remaining = iter(copies)
        with ThreadPoolExecutor(self._concurrency, "copy") as pool:
            while batch := list(itertools.islice(remaining, BATCH)):
                existing = self._there(batch)
                yield from pool.map(self._copied, batch, (existing.get((c.to_container, c.to_name)) for c in batch))

    def _there(self, batch: list[Copy]) -> dict[tuple[str, str], BlobProperties]:
        """Return the batch's existing destinations."""
        names = defaultdict(set)
        for copy in batch:
            names[copy.to_container].add(copy.to_name)
        blobs_there = {}
        for container, targets in names.items():
            prefix = os.path.commonprefix(list(targets))  # noqa: RUF071 a listing's prefix is characters, not folders
            for blob in self._listed(container, prefix):
                if blob.name in targets:
                    blobs_there[container, blob.name] = blob
        return blobs_there

    def _listed(self, container: str, prefix: str) -> Iterator[BlobProperties]:
        client = self._service.get_container_client(container)
        with translated(f"could not list {container}/{prefix}"):
            try:
                yield from client.list_blobs(name_starts_with=prefix, include=["metadata", "copy"])
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise

    def _copied(self, copy: Copy, there: BlobProperties | None) -> Blob:
        """Return the finished copy. `there` is the destination's existing blob, if any."""
        with translated(f"could not copy {copy.container}/{copy.source.name}"):
            if there is not None and _is_copy_of(there, copy):
                status = there.copy.status
                if status in (None, "success"):
                    return blob_of(there)
                if status == "pending":
                    return self._finished(copy)
            return self._made(copy, there)

    def _made(self, copy: Copy, there: BlobProperties | None) -> Blob:
        try:
            started = self._start(copy, there)
        except HttpResponseError as exc:
            if code_of(exc) in _MADE_MEANWHILE:
                return self._finished(copy)
            if status_of(exc) != 404:
                raise
            # The service gives the same error for a missing source and a missing destination container.
            create_container(self._service, copy.to_container)
            started = self._start(copy, None)
        if started["copy_status"] != "success":
            return self._finished(copy)
        source = copy.source
        metadata = {SOURCE_ETAG: source.etag}
        return Blob(
            copy.to_name, bare_etag(started["etag"]), source.size, source.md5, started["last_modified"], metadata
        )

    def _start(self, copy: Copy, there: BlobProperties | None) -> dict[str, Any]:
        """Start the copy, unless the destination has changed since the listing.

        Two concurrent attempts must not both write the copy, because each would report a different etag.
        """
        unchanged = {"etag": there.etag, "match_condition": MatchConditions.IfNotModified} if there else {}
        started: dict[str, Any] = self._client(copy).start_copy_from_url(
            self._service.get_blob_client(copy.container, copy.source.name).url.partition("?")[0],
            metadata={SOURCE_ETAG: copy.source.etag},
            source_etag=f'"{copy.source.etag}"',
            source_match_condition=MatchConditions.IfNotModified,
            **(unchanged or {"match_condition": MatchConditions.IfMissing}),
        )
        return started

    def _finished(self, copy: Copy) -> Blob:
        """Wait for the pending copy at the destination, whichever attempt started it."""
        deadline, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
        while (properties := self._client(copy).get_blob_properties()).copy.status == "pending":
            if time.monotonic() > deadline:
                raise Unavailable(f"{_what(copy)} is not finished yet. It continues by itself.")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if properties.copy.status != "success" or not _is_copy_of(properties, copy):
            raise Unavailable(
                f"{_what(copy)} ended {properties.copy.status}: {properties.copy.status_description or 'no reason'}"
            )
        return blob_of(properties)

    def _client(self, copy: Copy) -> Any:
        return self._service.get_blob_client(copy.to_container, copy.to_name)


def _what(copy: Copy) -> str:
    return f"the copy of {copy.container}/{copy.source.name} to {copy.to_container}/{copy.to_name}"


def _is_copy_of(there: BlobProperties, copy: Copy) -> bool:
    return (there.metadata or {}).get(SOURCE_ETAG) == copy.source.etag


def blob_of(properties: BlobProperties) -> Blob:
    md5 = bytes(properties.content_settings.content_md5 or b"").hex()
    metadata = dict(properties.metadata or {})
    return Blob(
        str(properties.name), bare_etag(properties.etag), int(properties.size), md5, properties.last_modified, metadata
    )


def bare_etag(etag: object) -> str:
    """Return the etag without quotes, as listings give it."""
    return str(etag).strip('"')


def create_container(service: BlobServiceClient, name: str) -> None:
    """Create the container unless it exists."""
    try:
        service.create_container(name)
    except HttpResponseError as exc:
        if code_of(exc) != "ContainerAlreadyExists":
            raise
