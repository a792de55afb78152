"""The workspace's jobs. Unfinished jobs are in memory, every job is in the store, and a page reads only its own rows.

So the memory of a control plane does not grow with the number of ended jobs, and a listing reads no more rows than it
returns.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from emulators.azureml.kernel.models import TERMINAL, Job, Json, Status
from emulators.azureml.workspace.store import Store

TAG, PROPERTY = "tag", "property"
MOST_CHILDREN = 10_000
PARENT = "parent"  # the label that finds a job's children
NOBODY = ""


@dataclass(frozen=True)
class Label:
    """A tag or user property that a listed job must have. None means any value."""

    kind: str
    name: str
    value: str | None


@dataclass(frozen=True)
class Listing:
    """A filter for jobs: archived (True), not archived (False) or every job (None), with each of these labels, and
    with a smaller number than `before`."""

    archived: bool | None = False
    labels: tuple[Label, ...] = ()
    before: int | None = None
    of: str | None = NOBODY  # whose steps or trials are listed; None lists all jobs
    job_type: str | None = None


class Jobs:
    """Jobs by name. A live job is one shared object; an ended job is read from the store each time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._live: dict[str, Job] = {}
        self._places: defaultdict[tuple[str, Status], dict[str, Job]] = defaultdict(dict)
        for body in store.live_jobs():
            self._enter(_job(body))

    def get(self, name: str) -> Job | None:
        if name in self._live:
            return self._live[name]
        body = self._store.job(name)
        return _job(body) if body else None

    def live(self) -> Iterator[Job]:
        """Yield the jobs that have not ended, in the order of their submission."""
        return iter(sorted(self._live.values(), key=lambda job: job.number))

    def on_cluster(self, cluster: str, statuses: Iterable[Status]) -> list[Job]:
        """Return the live jobs of a cluster with these statuses, oldest first."""
        found = [job for status in statuses for job in self._places[cluster, status].values()]
        return sorted(found, key=lambda job: job.number)

    def newest_number(self) -> int:
        return self._store.newest_job()

    def save(self, job: Job, events: Iterable[Json] = (), *, labels: bool = False) -> None:
        """Store a job and the events about its change. `labels`: whether the job's tags or properties changed."""
        ended = job.status in TERMINAL
        archived = bool(job.properties.get("isArchived"))
        self._store.put_job(
            (job.number, job.name, archived, ended), dataclasses.asdict(job), events, _labels(job) if labels else None
        )
        if not ended and job.name not in self._live:
            self._enter(job)

    def move(self, job: Job, status: Status) -> None:
        """Give a live job another status."""
        self._places[job.cluster, job.status].pop(job.name, None)
        job.status = status
        if status in TERMINAL:
            self._live.pop(job.name, None)
        else:
            self._places[job.cluster, status][job.name] = job

    def forget(self, job: Job) -> None:
        """Delete an ended job."""
        self._store.delete_job(job.number)

    def page(self, wanted: Listing, limit: int) -> list[Job]:
        """Return the newest jobs that match a listing."""
        labels = [(label.kind, label.name, label.value) for label in wanted.labels]
        if wanted.of:
            labels.insert(0, (PARENT, PARENT, wanted.of))
        return [self._current(body) for body in self._rows(wanted, labels, limit)]

    def _rows(self, wanted: Listing, labels: list[tuple[str, str, str | None]], limit: int) -> list[Json]:
        without = PARENT if wanted.of == NOBODY else ""
        return self._store.jobs(wanted.archived, labels, wanted.before, limit, without, wanted.job_type)

    def children(self, name: str) -> list[Job]:
        """Return the child jobs of a pipeline or a sweep, oldest first."""
        rows = self._store.jobs(None, [(PARENT, PARENT, name)], None, MOST_CHILDREN)
        return [self._current(body) for body in reversed(rows)]

    def _current(self, body: Json) -> Job:
        return self._live.get(body["name"]) or _job(body)

    def _enter(self, job: Job) -> None:
        self._live[job.name] = job
        self._places[job.cluster, job.status][job.name] = job


def _job(body: Json) -> Job:
    return Job(**{**body, "status": Status(body["status"])})


def _labels(job: Job) -> list[tuple[str, str, str]]:
    family = [(PARENT, PARENT, job.parent)] if job.parent else []
    return family + [
        (kind, name, str(value))
        for kind, key in ((TAG, "tags"), (PROPERTY, "properties"))
        for name, value in job.properties[key].items()
    ]
