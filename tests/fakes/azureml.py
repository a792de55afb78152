"""Azure ML's jobs and clusters in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from shared.adapters.azureml.document import document
from shared.adapters.azureml.failures import failure_of, summary
from shared.adapters.azureml.job_folder import job_folder, rank_of
from shared.clusters.model import Cluster, NodeCounts
from shared.jobs.location import Asset, Location, Pattern, Where
from shared.jobs.model import ENDED, UNKNOWN_FAILURE, JobFolder, JobState, JobStatus, JobTimes, StepStatus
from shared.jobs.ports import LivePage
from shared.jobs.problem import Problem
from shared.jobs.readers.pipeline import WrittenStep, steps
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import HOUR_PROPERTY, PIPELINE, Environment, JobSpec
from shared.kernel.errors import BadInput, NotFound, Unavailable
from shared.kernel.storage import Place
from tests.fakes.storage import Clock

_RAW_STATES = {
    "Queued": JobState.QUEUED,
    "Running": JobState.RUNNING,
    "Completed": JobState.COMPLETED,
    "Failed": JobState.FAILED,
    "Canceled": JobState.CANCELED,
}


NEVER = JobTimes()


@dataclass
class _Job:
    spec: dict[str, Any]
    raw: str = "Queued"
    error: str = ""
    times: JobTimes = NEVER


class FakeJobs:
    """Azure ML's jobs. `jobs` is in order of submission; `set` is Azure ML's side. A compute outside `clusters` is
    refused."""

    PAGE = 100  # jobs in a page of `live_page`

    def __init__(
        self,
        clusters: Iterable[str] = ("cpu-cluster",),
        datastores: dict[str, str] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.jobs: dict[str, _Job] = {}
        self.clusters = set(clusters)
        self.vm_sizes: dict[str, str] = {}  # clusters with another VM size than the usual one
        self.datastores = {"workspaceblobstore": "azureml-blobstore", "drops": "drops", **(datastores or {})}
        self.submissions: list[str] = []  # every call of submit, also when the job existed
        self.assets: dict[tuple[str, str], Asset] = {}
        self.metrics: dict[str, dict[str, list[tuple[float, float, float]]]] = {}  # what a job logged to MLflow
        self.steps: dict[str, dict[str, StepStatus]] = {}  # the steps of pipelines, by pipeline
        self.components: set[str] = set()  # the ids of registered components
        self.empty: set[Where] = set()  # places without data
        self.offline = False  # whether the nodes can't download anything
        self.cached: set[str] = set()  # patterns of the files that the nodes have cached
        self.down = False
        self.busy = False  # whether it limits requests

    def set(self, name: str, raw: str, error: str = "") -> None:
        """Put the job into one of the states Queued, Running, Completed, Failed, Canceled."""
        job, now = self.jobs[name], self.clock()
        if raw == "Running" and job.raw != "Running":
            job.times = JobTimes(now)
        elif _RAW_STATES[raw] in ENDED and job.times.ended is None:
            job.times = JobTimes(job.times.began or (None if raw == "Canceled" else now), now)
        job.raw, job.error = raw, error

    def set_step(self, name: str, step: str, raw: str, error: str = "") -> None:
        """Put a step of a pipeline into a state; the first state other than Queued sets the step's begin."""
        before, now = self.steps.setdefault(name, {}).get(step), self.clock()
        state = _RAW_STATES[raw]
        began = before.began if before and before.began else now if raw != "Queued" else None
        ended = now if state in ENDED else None
        self.steps[name][step] = StepStatus(step, f"{name}-of-{step}", state, began, ended, summary(error))

    def submit(self, job: JobSpec) -> JobStatus:
        self._answer()
        self.submissions.append(job.name)
        if job.name not in self.jobs:
            self._accept(job)
        return self._status(job.name)

    def scarce(self) -> bool:
        return self.busy

    def document(self, job: JobSpec) -> dict[str, Any]:
        return document(job)

    def problems(self, job: JobSpec) -> list[Problem]:
        if job.kind == PIPELINE:
            alone = (step for step in steps(job) if step.kind != PIPELINE and not step.component)
            return [each for step in alone for each in self.problems(step.job)]
        needed = {"command": job.command, "environment": job.environment}
        return [Problem(key, "Missing data for required field.") for key, value in needed.items() if not value]

    def lacks(self, job: JobSpec) -> list[str]:
        self._answer()
        if job.kind == PIPELINE:
            data = [
                f"There are no data {v.path}."
                for v in job.data.values()
                if isinstance(v.path, Asset) and v.path.id.startswith("rows")
            ]
            return data + [
                f"Step {s.name!r}: {why}" for s in steps(job) for why in (*self._absent(s), *self.lacks(s.job))
            ]
        image = job.environment.image if isinstance(job.environment, Environment) else ""
        absent = [(name, place_text(given.path)) for name, given in job.data.items() if given.path in self.empty]
        nothing = [f"Input {name!r}: there is nothing at {place}; is it a file?" for name, place in absent]
        return nothing + ([f"Image {image!r}: R can't be installed."] if image.startswith("r-base") else [])

    def unreachable(self, url: str, cached: str) -> str:
        self._answer()
        return "The nodes can't reach it: no address." if self.offline and cached not in self.cached else ""

    def _absent(self, step: WrittenStep) -> list[str]:
        there = not step.component or str(step.component) in self.components
        return [] if there else [f"component {place_text(step.component)} is not in the workspace; register it first."]

    def status(self, name: str) -> JobStatus | None:
        self._answer()
        return self._status(name) if name in self.jobs else None

    def times(self, name: str) -> JobTimes:
        self._answer()
        return self.jobs[name].times if name in self.jobs else JobTimes()

    def listed(self, hour: str) -> Iterator[JobStatus]:
        self._answer()
        for name, job in reversed(self.jobs.items()):
            if (job.spec.get("properties") or {}).get(HOUR_PROPERTY) == hour:
                status = self._status(name)
                yield replace(status, error="", steps=None if _is_pipeline(job.spec) else ())

    def cancel(self, name: str) -> None:
        self._answer()
        if name in self.jobs and _RAW_STATES[self.jobs[name].raw] not in ENDED:
            self.set(name, "Canceled")

    def active(self) -> list[tuple[str, str]]:
        self._answer()
        alive = [(n, j) for n, j in reversed(self.jobs.items()) if _RAW_STATES[j.raw] not in ENDED]
        return [(name, _cluster_of(job.spec)) for name, job in alive]

    def live_page(self, token: str = "") -> LivePage:
        self._answer()
        names = list(reversed(self.jobs))
        if token and token not in names:
            raise BadInput(f"{token!r} is not a token of a page.")
        start = names.index(token) + 1 if token else 0
        page = names[start : start + self.PAGE]
        live = tuple(name for name in page if _RAW_STATES[self.jobs[name].raw] not in ENDED)
        return LivePage(live, page[-1] if start + len(page) < len(names) else "")

    def folder(self, name: str) -> JobFolder:
        return job_folder("azureml", name)

    def rank_of(self, log: str) -> int | None:
        return rank_of(log)

    def logged(self, name: str) -> dict[str, list[tuple[float, float, float]]]:
        self._answer()
        return self.metrics.get(name, {})

    def place(self, where: Where | Pattern) -> Place:
        if not isinstance(where, Location):
            raise BadInput(f"{where!r} is not a path in a datastore.")
        if where.store not in self.datastores:
            raise NotFound(f"The workspace has no datastore {where.store!r}.")
        return Place(self.datastores[where.store], f"{where.path.rstrip('/')}/".lstrip("/"))

    def register_code(self, folder: Path | Location, digest: str) -> Asset:
        return self.assets.setdefault(("code", digest), self.code_id(digest))

    def register_environment(self, file: str, digest: str) -> Asset:
        return self.assets.setdefault(("environment", digest), self.environment_id(file, digest))

    def vm_size(self, cluster: str) -> str:
        self._answer()
        return self.vm_sizes.get(cluster, "Standard_D2s_v5") if cluster in self.clusters else ""

    def code_id(self, digest: str) -> Asset:
        return Asset(f"trainyard-{digest[:16]}:1")

    def environment_id(self, file: str, digest: str) -> Asset:
        return Asset(f"trainyard{'-gpu' if 'gpu' in Path(file).name else ''}:{digest[:16]}")

    def check(self) -> None:
        self._answer()

    def _accept(self, job: JobSpec) -> None:
        if problems := self.problems(job):
            raise BadInput("; ".join(f"{p.path}: {p.message}" for p in problems))
        if job.cluster not in self.clusters:
            raise BadInput(f"there is no compute {job.cluster!r}; there are {', '.join(sorted(self.clusters))}")
        self.jobs[job.name] = _Job(json.loads(json.dumps(document(job))))

    def _status(self, name: str) -> JobStatus:
        job = self.jobs[name]
        state, steps = _RAW_STATES[job.raw], tuple(self.steps.get(name, {}).values())
        failure = failure_of(job.error) if state is JobState.FAILED else UNKNOWN_FAILURE
        return JobStatus(name, state, job.raw, job.error, steps, failure)

    def _answer(self) -> None:
        if self.down:
            raise Unavailable("Azure ML doesn't answer")


def _is_pipeline(job: dict[str, Any]) -> bool:
    return str(job.get("type")) == PIPELINE


def _cluster_of(job: dict[str, Any]) -> str:
    return str(job.get("compute", "")).removeprefix("azureml:")


class FakeClusters:
    def __init__(self, clusters: Iterable[Cluster] = ()) -> None:
        self.clusters = {cluster.name: cluster for cluster in clusters}
        self.zeroed: list[str] = []  # the clusters whose minimum actually reached 0, in order
        self.counts: dict[str, list[NodeCounts]] = {}  # the workspace's own counts
        self.refuses: dict[str, str] = {}  # clusters that refuse every change, with Azure ML's words

    def list(self) -> list[Cluster]:
        return [self.clusters[name] for name in sorted(self.clusters)]

    def node_counts(self, name: str, since: datetime, until: datetime) -> tuple[NodeCounts, ...]:
        return tuple(count for count in self.counts.get(name, []) if since <= count.at < until)

    def scale(self, name: str, min_nodes: int | None = None, idle_seconds: float | None = None) -> None:
        if name not in self.clusters:
            raise NotFound(f"there is no cluster {name!r}")
        if name in self.refuses:
            raise Unavailable(self.refuses[name])
        before = self.clusters[name]
        after = replace(
            before,
            min_nodes=before.min_nodes if min_nodes is None else min_nodes,
            idle_seconds=before.idle_seconds if idle_seconds is None else idle_seconds,
        )
        self.clusters[name] = after
        if before.min_nodes and not after.min_nodes:
            self.zeroed.append(name)

    def stop(self, name: str) -> None:
        if name not in self.clusters:
            raise NotFound(f"there is no compute {name!r}")
        if name in self.refuses:
            raise Unavailable(self.refuses[name])
        self.clusters[name] = replace(self.clusters[name], nodes=0, running_nodes=0, target_nodes=0)
