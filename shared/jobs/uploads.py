"""Receive folders for jobs: hand out upload addresses, and check for completeness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from shared.jobs import upload
from shared.jobs.limits import Limits
from shared.jobs.location import Location
from shared.jobs.ports import Stores
from shared.jobs.readers.azureml import path_of
from shared.jobs.route import Routes
from shared.jobs.spec import JobSpec
from shared.jobs.upload import File
from shared.kernel.errors import Impossible
from shared.kernel.storage import Copy, Place

ADDRESS_SECONDS = 900.0  # seconds for which an upload address is valid


@dataclass(frozen=True)
class Wanted:
    """The files still to upload, as names with upload addresses; empty if the folder is complete."""

    path: Location
    digest: str
    files: tuple[tuple[str, str], ...]


def begin(stores: Stores, limits: Limits, routes: Routes, files: Iterable[File]) -> Wanted:
    """The missing files of a folder, with an upload address for each. Once all files are uploaded, the result is empty.

    An address accepts one file with one name. It can't overwrite a file, except one with the wrong content.
    """
    listed = sorted(files)
    _check_allowed(limits, routes)
    upload.check(listed, limits.max_upload_mib * upload.MIB)
    name = upload.digest(listed)
    place, there = stores.jobs.place(upload.path(name)), _there(stores, name)
    urls = [
        (file.name, stores.blobs.create_url(place.container, place.prefix + file.name, ADDRESS_SECONDS, other))
        for file, other in upload.missing(listed, there)
    ]
    return Wanted(upload.path(name), name, tuple(urls))


def check_complete(stores: Stores, job: JobSpec) -> None:
    """Raise Impossible if a folder of the job is missing or does not match the folder's digest."""
    for place, name in upload.used(job):
        files = [File(path, size, md5) for path, (size, md5) in _there(stores, name).items()]
        if upload.digest(files) != name:
            why = "there" if files else "not there"
            raise Impossible(
                f"{path_of(place)}: the files of {upload.path(name)} are {why}, and do not match the announcement. "
                "Upload them again.",
                "upload_incomplete",
            )
        if place.endswith(upload.CONTEXT):
            upload.check_context(files)


def collect(stores: Stores, drop: Place, folder: str, limit_mib: int, *, is_context: bool = False) -> Location:
    """Copy a drop's folder to the content-addressed place, and return this place.

    Raises Impossible for an invalid folder. A repeat copies nothing again.
    """
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    source = Place(drop.container, "/".join([drop.prefix.rstrip("/"), *parts]) + "/")
    blobs = list(islice(stores.blobs.list(source), upload.MOST_FILES + 1))  # the extra one is rejected below
    names = {blob.name: blob.name.removeprefix(source.prefix) for blob in blobs}
    files = [File(names[blob.name], blob.size, blob.md5) for blob in blobs]
    if unknown := [file.name for file in files if not file.md5]:
        raise Impossible(f"{unknown[0]!r} has no MD5; upload it again in one request.", "bad_upload")
    upload.check(files, limit_mib * upload.MIB)
    if is_context:
        upload.check_context(files)
    name = upload.digest(files)
    target = stores.jobs.place(upload.path(name))
    copies = (Copy(b, source.container, target.container, target.prefix + names[b.name]) for b in blobs)
    for _ in stores.blobs.copy(copies):
        pass
    return upload.path(name)


def _check_allowed(limits: Limits, routes: Routes) -> None:
    if not limits.allows_code and not any(route.limits.allows_code for route in routes.values()):
        raise Impossible(
            "Own code is not allowed here; an administrator can allow it in the routes file (allow: [code]).",
            "code_not_allowed",
        )


def _there(stores: Stores, name: str) -> dict[str, tuple[int, str]]:
    place = stores.jobs.place(upload.path(name))
    return {blob.name.removeprefix(place.prefix): (blob.size, blob.md5) for blob in stores.blobs.list(place)}
