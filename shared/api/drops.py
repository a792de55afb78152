"""Drops and uploads over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from shared.api import queries
from shared.api.answers import Folder, Uploads
from shared.api.records import DropAnswer, ListedDrop
from shared.api.requests import DropName, DropsQuery, FolderRequest, RouteName, UploadRequest, files, offered
from shared.drops import retrain
from shared.drops import uploads as drop_uploads
from shared.drops.ports import DropPorts
from shared.jobs import uploads
from shared.jobs.ports import WorkspacePorts
from shared.jobs.readers.place_text import place_text
from shared.kernel.drop_key import DropKey
from shared.kernel.encode import Json
from shared.kernel.person import Person
from shared.kernel.reply import Reply
from shared.runs.answers import Accepted, accepted


def list_drops(ports: DropPorts, query: DropsQuery) -> Annotated[list[Json], list[ListedDrop]]:
    return queries.drops(ports, query)


def get_drop(ports: DropPorts, route: RouteName, name: DropName) -> Annotated[Json, DropAnswer]:
    return queries.drop(ports, route, name)


def train_again(
    ports: DropPorts, route: RouteName, name: DropName, key: str | None, by: Person
) -> Annotated[Reply, {202: Accepted}]:
    return accepted(retrain.train_again(ports, DropKey(route, name), key, *by))


def upload_addresses(
    ports: WorkspacePorts,
    route: RouteName,
    name: DropName,
    body: UploadRequest,
    by: Person,
    admit_code: Callable[[], None],
) -> Annotated[Json, Uploads]:
    key, wanted = DropKey(route, name), offered(body)
    if drop_uploads.may_become_code(ports.routes, key, wanted):
        admit_code()
    return drop_uploads.upload_addresses(ports.routes, ports.blobs, key, wanted, by.name)


def begin_upload(ports: WorkspacePorts, body: FolderRequest) -> Annotated[Json, Folder]:
    upload = uploads.begin(ports, ports.limits, ports.routes, files(body))
    missing = [{"name": name, "url": url} for name, url in upload.files]
    path = place_text(upload.path)
    return {"path": path, "digest": upload.digest, "seconds": uploads.ADDRESS_SECONDS, "files": missing}
