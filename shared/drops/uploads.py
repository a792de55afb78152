"""Uploads from a browser directly to storage, through signed addresses for one file of one drop each.

An address is valid for one blob and for 15 minutes. A file that is already stored in its full size, and is not older
than the offered file, gets no address, so an interrupted upload continues where it stopped.

The owner of the drop is metadata of its files, as for uploads from the command line. The address does not force the
browser to set this metadata, so the owner is self-reported, although the app knows the caller's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from shared.drops.decide import why_not_a_drop
from shared.jobs.route import Routes
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible
from shared.kernel.names import path_problem
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Blob, Blobs
from shared.runs.content import JOB_FILES, OWNER, SUCCESS_MARKER, drop_blobs

ADDRESS_LIFE = 900  # seconds


@dataclass(frozen=True)
class Offered:
    """A file in the browser. `name` is the path in the drop's folder, `modified` the time of the last change."""

    name: str
    size: int
    modified: datetime


def upload_addresses(
    routes: Routes, blobs: Blobs, key: DropKey, offered: Sequence[Offered], owner: str = ""
) -> dict[str, Any]:
    """The upload address and headers for each file; the headers set the drop's owner.

    Raises Impossible with every problem for which the drop would be rejected.
    """
    route = routes.get(key.route)
    if fault := why_not_a_drop(key, offered[0].name, route, routes):
        raise Impossible(fault[1], fault[0])
    _check(offered)
    uploaded = {blob.name.removeprefix(key.prefix()): blob for blob in drop_blobs(blobs, key)}
    files = [
        {
            "name": file.name,
            "url": None if _is_there(file, uploaded.get(file.name)) else _address(blobs, key, file),
        }
        for file in offered
    ]
    headers = {f"x-ms-meta-{OWNER}": quote(owner)} if owner else {}
    return {"drop": str(key), "files": files, "headers": headers, "seconds": ADDRESS_LIFE}


def may_become_code(routes: Routes, key: DropKey, offered: Sequence[Offered]) -> bool:
    """Whether an upload may change the code on nodes: a job file, or a file of a drop with code."""
    route = routes.get(key.route)
    if route is None:
        return False
    brings = any(file.name in JOB_FILES for file in offered)
    return route.limits.allows_code or (brings and route.job_file.allowed)


def _check(files: Sequence[Offered]) -> None:
    for file in files:
        if problem := path_problem(file.name):
            raise Impossible(problem, "bad_name")


def _is_there(file: Offered, blob: Blob | None) -> bool:
    """Whether the file is stored already. A marker is always written again, to mark the drop as complete now."""
    if blob is None or blob.last_modified is None or file.name == SUCCESS_MARKER:
        return False
    return blob.size == file.size and blob.last_modified >= file.modified


def _address(blobs: Blobs, key: DropKey, file: Offered) -> str:
    return blobs.write_url(DROPS_CONTAINER, f"{key.prefix()}{file.name}", ADDRESS_LIFE)
