"""Blobs of the storage account. The service makes the copies; see copying.py."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError

from shared.adapters.storage.copying import Copier, bare_etag, create_container
from shared.adapters.storage.listing import BlobListing
from shared.adapters.storage.signing import AddressSigner
from shared.adapters.translation import code_of, status_of, translated
from shared.kernel.errors import BadInput, Changed
from shared.kernel.storage import Blob, Copy, FolderPage, Growth, Place

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient

_DELETERS = 8  # concurrent deletions
_NOTHING_THERE = (404, 416)  # the blob does not exist, or has no byte at this offset


class StorageBlobs:
    """The first write to a missing container creates it; a read treats a missing container as empty."""

    def __init__(self, service: BlobServiceClient) -> None:
        self._service = service
        self._signer, self._listing = AddressSigner(service), BlobListing(service)

    @property
    def url(self) -> str:
        """Return the account's URL, without a trailing slash."""
        return str(self._service.url).rstrip("/")

    def list(self, place: Place) -> Iterator[Blob]:
        return (blob for _, blob in self._paged(place))

    def paged(self, place: Place, token: str = "", page: int = 5000) -> Iterator[tuple[str, Blob]]:
        return self._paged(place, token, page)

    def _paged(self, place: Place, token: str = "", page: int | None = None) -> Iterator[tuple[str, Blob]]:
        with translated(f"could not list {place.container}/{place.prefix}"):
            try:
                yield from self._listing.blobs(place.container, place.prefix, page, token)
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise

    def first(self, place: Place) -> Blob | None:
        return next((blob for _, blob in self._paged(place, page=1)), None)

    def folders(self, place: Place, token: str = "", limit: int = 5000) -> FolderPage:
        container = self._service.get_container_client(place.container)
        with translated(f"could not list {place.container}/{place.prefix}"):
            try:
                walk = container.walk_blobs(name_starts_with=place.prefix, delimiter="/", results_per_page=limit)
                pages: Any = walk.by_page(token or None)  # the SDK types it as a plain iterator
                names = {str(folder.name)[len(place.prefix) :].removesuffix("/") for folder in next(pages, ())}
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise
                return FolderPage([], "")
        return FolderPage(sorted(names, key=str.encode), str(pages.continuation_token or ""))

    def read(self, container: str, name: str, limit: int) -> bytes:
        with translated(f"could not read {container}/{name}"):
            stream = self._service.get_blob_client(container, name).download_blob()  # downloads at most the first 4 MiB
            if stream.size > limit:
                raise BadInput(f"{container}/{name} has {stream.size} bytes, the limit is {limit}.")
            data: bytes = stream.readall()
            return data

    def lines(self, container: str, name: str) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        for chunk in self._chunks(container, name):
            *whole, rest = (rest + decoder.decode(chunk)).split("\n")
            yield from (line.removesuffix("\r") for line in whole)
        if rest := rest + decoder.decode(b"", final=True):
            yield rest.removesuffix("\r")

    def read_from(self, container: str, name: str, offset: int, limit: int) -> bytes:
        client = self._service.get_blob_client(container, name)
        with translated(f"could not read {container}/{name}"):
            try:
                data: bytes = client.download_blob(offset=offset, length=limit).readall() if limit > 0 else b""
            except HttpResponseError as exc:
                if status_of(exc) not in _NOTHING_THERE:
                    raise
                return b""
        return data

    def grown(self, container: str, name: str, offset: int, limit: int) -> Growth | None:
        client, begin = self._service.get_blob_client(container, name), max(0, offset - 1)  # the range is never empty
        with translated(f"could not read {container}/{name}"):
            try:
                download = client.download_blob(offset=begin, length=limit + offset - begin)
                data: bytes = download.readall()
            except HttpResponseError as exc:
                if status_of(exc) not in _NOTHING_THERE:
                    raise
                return None
        known = download.properties
        size = int(str(known.content_range).rpartition("/")[2])  # the SDK sets `known.size` to the length of the range
        return Growth(data[offset - begin :], size, known.last_modified)

    def tail(self, container: str, name: str, size: int) -> str:
        client = self._service.get_blob_client(container, name)
        with translated(f"could not read {container}/{name}"):
            try:
                length = client.get_blob_properties().size
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise
                return ""
        return self.read_from(container, name, max(0, length - size), size).decode("utf-8", "replace")

    def write(self, container: str, name: str, data: bytes, content_type: str) -> Blob:
        written = self._upload(container, name, data, content_type, overwrite=True)
        md5 = bytes(written.get("content_md5") or b"").hex()
        return Blob(name, bare_etag(written["etag"]), len(data), md5, written["last_modified"])

    def write_once(self, container: str, name: str, data: bytes, content_type: str) -> None:
        try:
            self._upload(container, name, data, content_type, overwrite=False)
        except Changed:  # the blob exists
            return

    def _upload(self, container: str, name: str, data: bytes, content_type: str, overwrite: bool) -> dict[str, Any]:
        from azure.storage.blob import ContentSettings

        client = self._service.get_blob_client(container, name)
        settings = ContentSettings(content_type=content_type)
        with translated(f"could not write {container}/{name}"):
            try:
                return dict(client.upload_blob(data, overwrite=overwrite, content_settings=settings))
            except HttpResponseError as exc:
                if code_of(exc) != "ContainerNotFound":
                    raise
                create_container(self._service, container)
                return dict(client.upload_blob(data, overwrite=overwrite, content_settings=settings))

    def copy(self, copies: Iterable[Copy], concurrency: int = 16) -> Iterator[Blob]:
        return Copier(self._service, concurrency).run(copies)

    def remove(self, container: str, names: Iterable[str]) -> None:
        self._remove(container, ((name, {}) for name in names))

    def remove_listed(self, container: str, blobs: Iterable[Blob]) -> None:
        as_listed = {"match_condition": MatchConditions.IfNotModified}
        self._remove(container, ((blob.name, {"etag": f'"{bare_etag(blob.etag)}"', **as_listed}) for blob in blobs))

    def _remove(self, container: str, blobs: Iterable[tuple[str, dict[str, Any]]]) -> None:
        client = self._service.get_container_client(container)

        def gone(blob: tuple[str, dict[str, Any]]) -> None:
            try:
                client.delete_blob(blob[0], delete_snapshots="include", **blob[1])
            except HttpResponseError as exc:
                if status_of(exc) not in (404, 412):
                    raise

        with translated(f"could not remove blobs of {container}"), ThreadPoolExecutor(_DELETERS, "delete") as pool:
            list(pool.map(gone, blobs))

    def read_url(self, container: str, name: str, seconds: float) -> str:
        return self._signer.read_url(container, name, seconds)

    def write_url(self, container: str, name: str, seconds: float) -> str:
        return self._signer.write_url(container, name, seconds)

    def create_url(self, container: str, name: str, seconds: float, replace: bool = False) -> str:
        return self._signer.create_url(container, name, seconds, replace)

    def check(self) -> None:
        with translated("the storage account doesn't answer"):
            next(iter(self._service.list_containers(results_per_page=1)), None)

    def _chunks(self, container: str, name: str) -> Iterator[bytes]:
        with translated(f"could not read {container}/{name}"):
            try:
                yield from self._service.get_blob_client(container, name).download_blob().chunks()
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise
