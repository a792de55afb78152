"""Code that lies in a drop, in the folder that its job file names."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from shared.jobs import upload
from shared.jobs.job import is_relative
from shared.jobs.job_file import BrokenJobFile, JobFile
from shared.jobs.ports import HasJobs, HasLimits
from shared.jobs.routes_file import Route
from shared.jobs.uploads import collect
from shared.kernel.drop_key import DropKey
from shared.kernel.has import HasBlobs
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Place


class Ports(HasBlobs, HasJobs, HasLimits, Protocol):
    """What is needed here from outside."""


def with_code(ports: Ports, key: DropKey, route: Route, job_file: JobFile | None) -> JobFile | None:
    """The job file with the drop's code where its content belongs. Twice copies nothing again.

    Raises BrokenJobFile if the route lets no drop bring its own, Impossible if the folder can't be code.
    """
    if job_file is None or not _brings_code(route, job_file):
        return job_file
    place = Place(DROPS_CONTAINER, key.prefix())
    code = collect(ports, place, str(job_file.content["code"]), ports.limits.max_upload_mib)
    return replace(job_file, content={**job_file.content, "code": code})


def with_any_code(route: Route, job_file: JobFile | None) -> JobFile | None:
    """The same before there is a drop: whatever the code will be, it has a place."""
    if job_file is None or not _brings_code(route, job_file):
        return job_file
    return replace(job_file, content={**job_file.content, "code": upload.path(upload.digest(()))})


def _brings_code(route: Route, job_file: JobFile) -> bool:
    code = job_file.content.get("code")
    if not (code and route.job_file.allowed and is_relative(code)):
        return False
    if not route.limits.allows_code:
        words = "code: a drop can't bring its own on this route; an administrator can allow it in the routes file."
        raise BrokenJobFile(f"{job_file.where('code')}: {words}")
    return True
