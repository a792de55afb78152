"""Take a Batch AI document for a job: find where its mounts' files are, and make the Azure ML job of it.

A mount's files are looked for, in this order: where the request says; in the drop, in a folder of the mount's path or
name; in a datastore of the share's or container's name; at last below batchai/ in the workspace's own storage, where
whoever moves here copies them to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.batchai.job import BatchJob, Beside, read_job
from shared.batchai.mounts import Mount
from shared.batchai.report import Report
from shared.batchai.translate import TEMPLATE, Source, shortened, translate
from shared.jobs.data import data_of, read_data
from shared.jobs.job import DROPS_DATASTORE, OUTPUT_DATASTORE, Job
from shared.jobs.model import Problem
from shared.jobs.ports import HasJobs
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, Impossible, NotFound
from shared.kernel.has import HasBlobs
from shared.kernel.names import path_problem
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Place

FOLDER = "batchai"  # of the workspace's own datastore
_OURS = (DROPS_DATASTORE, OUTPUT_DATASTORE, "workspaceartifactstore", "workspaceworkingdirectory", "workspacefilestore")


class Ports(HasBlobs, HasJobs, Protocol):
    """What is needed here from outside."""


@dataclass(frozen=True)
class Order:
    """A job.json and what comes with it. `mounts` says by a mount's path or name where its files are."""

    content: dict[str, Any]
    beside: Beside = field(default_factory=Beside)
    mounts: Mapping[str, str] = field(default_factory=dict)
    drop: DropKey | None = None
    longest_seconds: float = float("inf")


@dataclass(frozen=True)
class Adopted:
    """`problems` keep it from being sent; `missing` are sentences on mounts that hold nothing."""

    job: Job
    report: Report
    missing: tuple[str, ...]

    @property
    def problems(self) -> list[Problem]:
        return self.report.problems

    @property
    def template(self) -> Job:
        """What lies below the job: the code with the launcher, and a description for whoever sees it in Azure ML."""
        return {**TEMPLATE, "description": self.report.summary()}


def adopt(ports: Ports, order: Order) -> Adopted:
    """The job that does the same. Never raises for what the document holds."""
    job = read_job(order.content, order.beside)
    shortened(job, order.longest_seconds)
    sources = {use.mount: _source(ports, order, use.mount, job) for use in job.uses}
    made = translate(job, sources, order.beside.environment, order.beside.files)
    missing = [
        f"{mount.variable} holds nothing: copy its files to {source.path}, or name where they are (--mount "
        f"{mount.path}=PATH)."
        for mount, source in made.missing
    ]
    return Adopted(made.job, job.report, tuple(missing))


def _source(ports: Ports, order: Order, mount: Mount, job: BatchJob) -> Source:
    names = list(dict.fromkeys(name for name in (mount.path, mount.name) if name and not path_problem(name)))
    for name in names:
        if name in order.mounts:
            return _named(ports, order.mounts[name], name, job)
    for name in names if order.drop else ():
        assert order.drop is not None
        if ports.blobs.first(Place(DROPS_CONTAINER, f"{order.drop.prefix()}{name}/")):
            return Source(f"{data_of(order.drop, False).path}/{name}/", True)
    own = mount.name or mount.path
    if own not in _OURS and re.fullmatch(r"\w{1,255}", own, re.ASCII):
        found = _looked_up(ports, f"azureml://datastores/{own}/paths/")
        if found.there is not False:
            return found
    return _named(ports, f"{OUTPUT_DATASTORE}/{FOLDER}/{own}", own[:80], job)


def _named(ports: Ports, path: str, name: str, job: BatchJob) -> Source:
    try:
        return _looked_up(ports, f"{read_data(path).path.rstrip('/')}/")
    except Impossible as exc:
        job.report.refuse(f"mounts.{name}", str(exc))
        return Source("")


def _looked_up(ports: Ports, path: str) -> Source:
    """Whether there is anything. A datastore that is not there holds nothing; one of another account nobody can see."""
    try:
        place = ports.jobs.place(path)
    except NotFound:
        return Source(path, False)
    except BadInput:
        return Source(path, None)
    return Source(path, ports.blobs.first(place) is not None)
