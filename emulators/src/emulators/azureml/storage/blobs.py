"""The storage account behind the datastores: folders are copied in both directions with bounded memory, logs are
appended, and addresses are signed."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import (
    BlobProperties,
    BlobSasPermissions,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.blob.aio import BlobServiceClient, ContainerClient, ExponentialRetry

from emulators.azureml.kernel.errors import DataError, Refused

PIECE = 4 * 1024 * 1024  # bytes of a file in memory at a time; also the largest block an append blob takes
PARALLEL = 8
SAS_HOURS = 24
LONGEST_NAME = (
    1024  # https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
)


@dataclass(frozen=True)
class Place:
    """A blob, or a folder of blobs when `path` is empty or ends in '/'."""

    container: str
    path: str

    def __str__(self) -> str:
        return f"{self.container}/{self.path}"


class Blobs:
    """Client of the storage account. Errors are raised as DataError, except those of `create_container`."""

    def __init__(self, connection_string: str) -> None:
        self._service: BlobServiceClient = BlobServiceClient.from_connection_string(
            connection_string,
            max_single_put_size=PIECE,
            max_block_size=PIECE,
            max_single_get_size=PIECE,
            max_chunk_get_size=PIECE,
            retry_policy=ExponentialRetry(initial_backoff=1, increment_base=1, random_jitter_range=1),
        )
        self.account = str(self._service.account_name)
        self.key = str(self._service.credential.account_key)
        self.url = str(self._service.url).rstrip("/")  # http://HOST:PORT/ACCOUNT for an emulator

    async def close(self) -> None:
        await self._service.close()

    async def reachable(self, seconds: float) -> None:
        """Return once the account's address accepts connections, because the account may still be starting, or
        after a time limit."""
        address = urlsplit(self.url)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        _, writer = await asyncio.open_connection(address.hostname, address.port)
                    except OSError:
                        await asyncio.sleep(0.02)
                        continue
                    writer.close()
                    return

    async def create_container(self, name: str) -> None:
        """Create a missing container."""
        try:
            await self._service.create_container(name)
        except ResourceExistsError:
            return

    def place_of(self, url: str) -> Place:
        """Return the container and path of a URL in this account, at any host and port. Raises DataError for any other
        URL.
        """
        with _as_data_error(f"{url.partition('?')[0][:200]!r}"):
            parts = urlsplit(url)
        path = unquote(parts.path).lstrip("/").removeprefix(f"{self.account}/")
        container, _, rest = path.partition("/")
        if parts.scheme not in ("http", "https") or not container:
            raise DataError(f"{url.partition('?')[0][:200]!r} is not an address of blobs in {self.account}.")
        return Place(container, rest)

    def container_sas(self, container: str, write: bool = True) -> str:
        """Return a URL for listing, reading and, with `write`, writing one container for a day."""
        rights = ContainerSasPermissions(read=True, write=write, list=True, create=write, add=write)
        sas = generate_container_sas(
            self.account, container, account_key=self.key, permission=rights, expiry=_tomorrow()
        )
        return f"{self.url}/{container}?{sas}"

    def blob_sas(self, place: Place) -> str:
        """Return a URL for reading one blob for a day."""
        sas = generate_blob_sas(
            self.account,
            place.container,
            place.path,
            account_key=self.key,
            permission=BlobSasPermissions(read=True),
            expiry=_tomorrow(),
        )
        return f"{self.url}/{place.container}/{quote(place.path)}?{sas}"

    async def download_file(self, place: Place, target: Path) -> None:
        """Download one blob to `target`. Raises DataError for a missing blob, or if the received bytes do not have
        the blob's size."""
        with _as_data_error(f"{place}"):
            container = self._service.get_container_client(place.container)
            size = (await container.get_blob_client(place.path).get_blob_properties()).size
            await _fetch(container, place.path, size, target)

    async def download_folder(self, place: Place, target: Path) -> int:
        """Download all blobs of a folder, several at a time, and return their number. Sizes are checked. Raises
        DataError for a blob whose name would leave `target`, and for a name that is both a file and a folder."""
        prefix = place.path and place.path.rstrip("/") + "/"
        with _as_data_error(f"{place}"):
            container = self._service.get_container_client(place.container)
            found = container.list_blobs(name_starts_with=prefix, include=["metadata"])
            listed = [(str(blob.name), int(blob.size)) async for blob in found if not _is_folder(blob)]
            work = iter([(name, size, _inside(target, name.removeprefix(prefix))) for name, size in listed])
            await _in_parallel(_worker(container, work) for _ in range(min(PARALLEL, len(listed))))
        return len(listed)

    async def exists(self, place: Place) -> bool:
        if not place.path:
            return False
        with _as_data_error(f"{place}"):
            return bool(await self._service.get_blob_client(place.container, place.path).exists())

    async def holds(self, place: Place, kind: str) -> bool:
        """Return whether there is data of this kind at a place: a file, or a folder with at least one file. A model
        may be either."""
        may_be_file = kind == "uri_file" or kind.endswith("_model")
        if may_be_file and await self.exists(place):
            return True
        return kind != "uri_file" and await self._has_files(place)

    async def _has_files(self, folder: Place) -> bool:
        prefix = folder.path and folder.path.rstrip("/") + "/"
        with _as_data_error(f"{folder}"):
            container = self._service.get_container_client(folder.container)
            async for blob in container.list_blobs(name_starts_with=prefix, include=["metadata"]):
                if not _is_folder(blob):
                    return True
        return False

    async def texts(self, place: Place, limit: int) -> dict[str, str]:
        """Return the contents of a folder's blobs of at most `limit` bytes, as text by relative name."""
        prefix = place.path.rstrip("/") + "/"
        found = {}
        with _as_data_error(f"{place}"):
            container = self._service.get_container_client(place.container)
            async for blob in container.list_blobs(name_starts_with=prefix):
                if blob.size <= limit:
                    content = await (await container.download_blob(blob.name)).readall()
                    found[str(blob.name).removeprefix(prefix)] = content.decode("utf-8", "replace")
        return found

    async def upload(self, place: Place, source: Path) -> None:
        """Write a file to a blob, replacing an existing blob. Raises Refused for a name too long for Azure."""
        if len(place.path) > LONGEST_NAME:
            raise Refused(f"{place}: the name of a blob has at most {LONGEST_NAME} characters.")
        with _as_data_error(f"{place}"), source.open("rb") as data:
            await self._service.get_blob_client(place.container, place.path).upload_blob(data, overwrite=True)

    async def write(self, place: Place, pieces: AsyncIterator[bytes], size: int | None) -> None:
        """Create or replace a blob from a stream of parts."""
        with _as_data_error(f"{place}"):
            client = self._service.get_blob_client(place.container, place.path)
            await client.upload_blob(pieces, length=size, overwrite=True)

    async def read(self, place: Place) -> AsyncIterator[bytes]:
        """Yield a blob's bytes in parts."""
        with _as_data_error(f"{place}"):
            client = self._service.get_blob_client(place.container, place.path)
            async for piece in (await client.download_blob()).chunks():
                yield piece

    async def below(self, place: Place) -> AsyncIterator[tuple[str, int]]:
        """Yield the names and sizes of a folder's blobs."""
        prefix = place.path and place.path.rstrip("/") + "/"
        with _as_data_error(f"{place}"):
            container = self._service.get_container_client(place.container)
            async for blob in container.list_blobs(name_starts_with=prefix):
                yield str(blob.name), int(blob.size)

    async def etags(self, place: Place) -> dict[str, str]:
        """Return the etags of a folder's blobs by relative name."""
        prefix = place.path and place.path.rstrip("/") + "/"
        with _as_data_error(f"{place}"):
            found = self._service.get_container_client(place.container).list_blobs(name_starts_with=prefix)
            return {str(b.name).removeprefix(prefix): str(b.etag) async for b in found if not _is_folder(b)}

    async def delete(self, place: Place) -> None:
        """Delete a blob; a missing blob is skipped."""
        with _as_data_error(f"{place}"):
            try:
                await self._service.get_blob_client(place.container, place.path).delete_blob()
            except ResourceNotFoundError:
                return

    async def open_log(self, place: Place) -> int:
        """Create a missing append blob, and return its size in bytes."""
        with _as_data_error(f"{place}"):
            client = self._service.get_blob_client(place.container, place.path)
            if not await client.exists():
                await client.create_append_blob()
            return int((await client.get_blob_properties()).size)

    async def append(self, place: Place, data: bytes, position: int) -> int:
        """Append to a log of `position` bytes, and return its new length. If the log no longer has `position`
        bytes, an earlier append succeeded although its answer was lost. Then nothing is appended, and the blob's
        current size is returned."""
        with _as_data_error(f"{place}"):
            client = self._service.get_blob_client(place.container, place.path)
            try:
                await client.append_block(data, appendpos_condition=position)
            except HttpResponseError as exc:
                if exc.status_code != HTTPStatus.PRECONDITION_FAILED:
                    raise
                return int((await client.get_blob_properties()).size)
            return position + len(data)


@asynccontextmanager
async def connect(connection_string: str) -> AsyncIterator[Blobs]:
    blobs = Blobs(connection_string)
    try:
        yield blobs
    finally:
        await blobs.close()


def _is_folder(blob: BlobProperties) -> bool:
    """Return whether a blob only marks a folder: its name ends with a slash, or Data Lake Storage tools marked it."""
    marks = {key.lower(): str(value).lower() for key, value in (blob.metadata or {}).items()}
    return str(blob.name).endswith("/") or (not blob.size and marks.get("hdi_isfolder") == "true")


async def _worker(container: ContainerClient, work: Iterator[tuple[str, int, Path]]) -> None:
    for name, size, target in work:
        await _fetch(container, name, size, target)


async def _fetch(container: ContainerClient, name: str, size: int, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    download = await container.download_blob(name)
    with target.open("wb") as file:
        async for chunk in download.chunks():
            file.write(chunk)
    if (got := target.stat().st_size) != size:
        raise DataError(f"{container.container_name}/{name}: {got} bytes arrived, the blob has {size}")


async def _in_parallel(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run the coroutines. The first failure cancels the others and is raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _inside(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise DataError(f"the blob name {name!r} can't be a file name under the folder that is read")
    return folder.joinpath(*parts)


@contextmanager
def _as_data_error(what: str) -> Iterator[None]:
    try:
        yield
    except AzureError as error:
        status = error.status_code if isinstance(error, HttpResponseError) else None
        kind = Refused if status and 400 <= status < 500 else DataError
        raise kind(f"{what}: {str(error).splitlines()[0]}") from error
    except OSError as error:
        raise DataError(f"{what}: {error}") from error
    except ValueError as error:  # the SDK's error for invalid container and blob names
        raise Refused(f"{what}: {error}") from error


def _tomorrow() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(hours=SAS_HOURS)
