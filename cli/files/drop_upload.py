"""Upload of a folder as a drop: in parallel, only new and changed files, and the marker last."""

from __future__ import annotations

import getpass
import hashlib
import itertools
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from ..errors import CliError, NotFound, Unreachable, extra
from ..parallel import in_parallel
from ..setup.profiles import Profile
from . import blocks
from .walk import files_below

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

CONTAINER = "drops"
WORKERS = 8
SUCCESS = "_SUCCESS"
BY = "trainyard_by"  # metadata of files that `drop` uploads: the uploader and the source folder, percent-encoded
OWNER = "trainyard_owner"  # the uploader alone: the owner of the drop's run, as self-reported
JOB_FILES = ("job.yaml", "job.yml", "job.json")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")

Progress = Callable[[int], None]  # receives the number of new bytes


@dataclass(frozen=True)
class Item:
    """A file to upload, the name of its blob, and the file's size in bytes."""

    path: Path
    blob: str
    size: int


@dataclass(frozen=True)
class There:
    """A blob that exists already. `md5` is hexadecimal, and empty if the storage has none."""

    size: int
    md5: str
    modified: datetime
    by: str = ""


@dataclass(frozen=True)
class Plan:
    """The changes of an upload to a drop. `gone` are blobs missing from the folder; they stay unless `delete` is
    requested.

    `by` is the last uploader and the source folder, as `drop` recorded them; '' if they are not recorded.
    """

    drop: str
    added: tuple[Item, ...]
    changed: tuple[Item, ...]
    same: tuple[Item, ...]
    gone: tuple[str, ...]
    marker_is_stale: bool
    by: str = ""

    @property
    def single(self) -> bool:
        """Return whether the drop is one archive. An archive is complete as soon as its blob exists."""
        return any(item.blob == self.drop for item in (*self.added, *self.changed, *self.same))

    @property
    def is_new(self) -> bool:
        return not (self.changed or self.same or self.gone)


@dataclass(frozen=True)
class Uploaded:
    """The result of an upload. `marked`: the upload closed the drop, so the content is new."""

    files: int
    bytes: int
    kept: int
    marked: bool
    deleted: int = 0


def items(source: Path, route: str, name: str) -> list[Item]:
    """Return the items of a drop of this folder, without the marker. An archive is one item: the drop itself, or a file
    in the drop if the drop's name has no archive's extension.

    Raises CliError if there is nothing to upload, and NotFound if the folder does not exist.
    """
    if source.is_file():
        if not source.name.lower().endswith(ARCHIVES):
            raise CliError(f"{source} is neither a folder nor an archive ({', '.join(ARCHIVES)}).")
        blob = f"{route}/{name}" if name.lower().endswith(ARCHIVES) else f"{route}/{name}/{source.name}"
        return [Item(source, blob, source.stat().st_size)]
    if not source.is_dir():
        raise NotFound(f"The folder {source} does not exist.")
    local_items = [Item(path, f"{route}/{name}/{below}", path.stat().st_size) for below, path in files_below(source)]
    marker = f"{route}/{name}/{SUCCESS}"
    data = [item for item in local_items if item.blob != marker]
    if not data:
        raise CliError(f"{source} has no files.")
    return data


def target_name(source: Path, name: str, in_a_folder: bool = False) -> str:
    """Return the drop's name: the given name, or the source's own. An archive's drop has the archive's extension,
    except for a drop that becomes a folder because a job file is uploaded with the archive."""
    name = name or source.resolve().name
    if not source.is_file():
        return name
    if in_a_folder:
        return name[: len(name) - len(_extension(name))]
    return name if _extension(name) else f"{name}{_extension(source.name)}"


def _extension(name: str) -> str:
    """Return the archive's extension, spelled as in the name; '' for any other name."""
    end = next((end for end in ARCHIVES if name.lower().endswith(end)), "")
    return name[len(name) - len(end) :]


def plan(container: ContainerClient, drop: str, local_items: list[Item], progress: Progress) -> Plan:
    """Compare the items with the drop's blobs by name, size and MD5. A file is read only if the sizes are equal."""
    with translated():
        there = _listing(container, drop)
    added: list[Item] = []
    changed: list[Item] = []
    same: list[Item] = []
    for item in local_items:
        existing = there.get(item.blob)
        group = added if existing is None else same if _is_same(item, existing, progress) else changed
        group.append(item)
    marker = f"{drop}/{SUCCESS}"
    gone = tuple(sorted(there.keys() - {item.blob for item in local_items} - {marker}))
    existing = there.get(marker) or there.get(drop)
    stale = not same or _is_stale(there, drop, same)
    return Plan(drop, tuple(added), tuple(changed), tuple(same), gone, stale, existing.by if existing else "")


def upload(
    container: ContainerClient,
    todo: Plan,
    progress: Progress,
    delete: bool = False,
    said: Mapping[str, str] = MappingProxyType({}),
) -> Uploaded:
    """Upload the added and changed files, delete the `gone` blobs if `delete` is set, then write the marker.

    After an interruption, the same call resumes. Nothing is written if all files are uploaded and the marker is newer
    than all of them. `said` becomes metadata of each file: the uploader, under OWNER and BY.
    """
    drop, missing, gone = todo.drop, [*todo.added, *todo.changed], todo.gone if delete else ()
    job_files = {f"{drop}/{name}" for name in JOB_FILES}  # job files also close a drop
    words = {key: quote(value) for key, value in said.items() if value}
    with translated():
        _send_all(container, [item for item in missing if item.blob not in job_files], progress, words)
        for name in gone:
            container.delete_blob(name)
        _send_all(container, [item for item in missing if item.blob in job_files], progress, words)
        marked = not todo.single and bool(missing or gone or todo.marker_is_stale)
        if marked:
            container.upload_blob(f"{drop}/{SUCCESS}", b"", overwrite=True, metadata=words)
    size = sum(item.size for item in missing)
    return Uploaded(len(missing), size, len(todo.same), marked or bool(missing), len(gone))


def free_name(container: ContainerClient, route: str, name: str) -> str:
    """Return the first of name-2, name-3, ... that has no blobs. The number comes before an archive's extension."""
    end = _extension(name)
    stem = name[: len(name) - len(end)]
    with translated():
        return next(
            candidate
            for number in itertools.count(2)
            if not _listing(container, f"{route}/{(candidate := f'{stem}-{number}{end}')}")
        )


def whose(source: Path) -> str:
    """Return the user, the machine and the source folder: ada@laptop:/home/ada/digits."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        user = "someone"
    return f"{user}@{socket.gethostname()}:{source.resolve()}"


def _listing(container: ContainerClient, drop: str) -> dict[str, There]:
    """Return the drop's blobs: the blobs in the folder, and the blob with exactly the drop's name, which comes first of
    all names with this prefix.
    """
    blobs = {}
    first = next(iter(container.list_blobs(name_starts_with=drop, include=["metadata"], results_per_page=1)), None)
    inside = container.list_blobs(name_starts_with=f"{drop}/", include=["metadata"])
    for blob in itertools.chain([first] if first and first.name == drop else [], inside):
        md5, by = blob.content_settings.content_md5, unquote((blob.metadata or {}).get(BY, ""))
        blobs[blob.name] = There(blob.size, bytes(md5).hex() if md5 else "", blob.last_modified, by)
    return blobs


def _is_same(item: Item, there: There, progress: Progress) -> bool:
    """Return whether the blob has the same size and MD5 as the file."""
    if there.size != item.size or there.md5 != _md5(item.path).hex():
        return False
    progress(item.size)
    return True


def _is_stale(there: dict[str, There], drop: str, same: list[Item]) -> bool:
    """Return whether the marker is missing or older than a file: an upload was interrupted before the end."""
    marker = there.get(f"{drop}/{SUCCESS}")
    return marker is None or any(there[item.blob].modified > marker.modified for item in same)


def _send_all(container: ContainerClient, missing: list[Item], progress: Progress, words: dict[str, str]) -> None:
    in_parallel(lambda item: _send(container, item, progress, words), missing, WORKERS)


def _send(container: ContainerClient, item: Item, progress: Progress, words: dict[str, str]) -> None:
    """Upload one file with its MD5. The storage computes no MD5 for a blob uploaded in blocks."""
    from azure.storage.blob import ContentSettings

    settings = ContentSettings(content_md5=bytearray(_md5(item.path)))
    if item.size > blocks.BLOCK:
        blocks.send(container.get_blob_client(item.blob), item.path, settings, words, progress)
        return
    with item.path.open("rb") as content:
        container.upload_blob(
            item.blob, content, length=item.size, overwrite=True, content_settings=settings, metadata=words
        )
    progress(item.size)


def _md5(path: Path) -> bytes:
    with path.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).digest()


@contextmanager
def opened(profile: Profile, account_url: str) -> Iterator[ContainerClient]:
    """Yield the drops container: through the local cloud's connection string, or at `account_url` with the identity of
    the user who is signed in here.

    Raises CliError if the required packages are not installed or no account is known.
    """
    try:
        from azure.identity import DefaultAzureCredential
        from azure.storage.blob import ContainerClient
    except ImportError as exc:
        raise CliError(f"Uploading needs two more packages: {extra('drop')}.") from exc
    address = account_url or profile.account_url
    if profile.connection_string and not account_url:
        client = ContainerClient.from_connection_string(profile.connection_string, CONTAINER)
    elif address:
        client = ContainerClient(address, CONTAINER, DefaultAzureCredential())
    else:
        raise CliError("Name the storage account: --account-url https://<account>.blob.core.windows.net")
    with client:
        yield client


@contextmanager
def translated() -> Iterator[None]:
    from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError, ServiceRequestError

    try:
        yield
    except ClientAuthenticationError as exc:
        raise CliError(f"The storage account denied access. Sign in with `az login`. {exc.message}") from exc
    except HttpResponseError as exc:
        raise CliError(f"The storage account refused: {exc.reason or exc.message}") from exc
    except (ServiceRequestError, AzureError) as exc:
        raise Unreachable(f"The storage account does not answer: {exc.message}") from exc
