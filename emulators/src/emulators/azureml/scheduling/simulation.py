"""Jobs on simulated clusters, which wait, run and end only by the clock, without nodes and processes.

They serve tests with ten thousand live jobs on one machine. Every status is entered and published as for a real job.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import time
from collections.abc import Mapping

from emulators.azureml.kernel.config import Life
from emulators.azureml.kernel.models import ON_NODES, TERMINAL, Cluster, Job, Json, Status, timestamp
from emulators.azureml.workspace.workspace import Workspace

AT_ONCE = 50  # changes between two turns of the event loop


class Simulation:
    """Moves the jobs of the clusters in `lives`, by cluster name in lower case."""

    def __init__(self, workspace: Workspace, lives: Mapping[str, Life]) -> None:
        self._workspace = workspace
        self._lives = {name.lower(): life for name, life in lives.items()}
        self._due: list[tuple[float, int, str, int]] = []  # when, the job's number, its name, its attempt
        self._sooner = asyncio.Event()
        self._known: set[str] = set()  # clusters whose jobs from before the restart were added

    def has(self, cluster: str) -> bool:
        return cluster.lower() in self._lives

    def add_jobs(self, cluster: Cluster) -> None:
        """Begin the lives of the waiting jobs: new jobs and, on the first call, the jobs of the last start."""
        life, name = self._lives[cluster.name.lower()], cluster.name.lower()
        new = frozenset({Status.NOT_STARTED}) if name in self._known else frozenset({Status.NOT_STARTED, Status.QUEUED})
        self._known.add(name)
        for job in self._workspace.on_cluster(name, new):
            if job.status is Status.NOT_STARTED:
                self._workspace.set_status(job, Status.QUEUED)
            self._plan(job, life.queued_seconds)

    def end(self, job: Job, status: Status) -> None:
        """End a job now as Completed or Failed, as if its time had come."""
        if job.status in (Status.NOT_STARTED, Status.QUEUED):
            self._begin(job)
        if status is Status.COMPLETED:
            self._workspace.set_status(job, Status.FINALIZING)
        error = _error("The simulated job failed, as it was told to.") if status is Status.FAILED else None
        self._workspace.set_status(job, status, ended=timestamp(), error=error)

    async def run(self) -> None:
        """Move jobs until cancelled."""
        while True:
            self._sooner.clear()
            for _ in range(AT_ONCE):
                if not self._due or self._due[0][0] > time.monotonic():
                    break
                self._step(*heapq.heappop(self._due)[2:])
            pause = max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._sooner.wait()

    def _step(self, name: str, attempt: int) -> None:
        job = self._workspace.jobs.get(name)
        if job is None or job.status in TERMINAL or job.attempt != attempt or not self.has(job.cluster):
            return
        life = self._lives[job.cluster]
        if job.status is Status.QUEUED:
            self._begin(job)
            if life.running_seconds is not None:
                self._plan(job, life.running_seconds)
        elif job.status in ON_NODES:
            self.end(job, life.end)

    def _begin(self, job: Job) -> None:
        if job.status is Status.NOT_STARTED:
            self._workspace.set_status(job, Status.QUEUED)
        self._workspace.set_status(job, Status.PREPARING, attempt=job.attempt + 1)
        self._workspace.set_status(job, Status.RUNNING, started=timestamp())

    def _plan(self, job: Job, seconds: float) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, job.number, job.name, job.attempt))
        self._sooner.set()


def _error(message: str) -> Json:
    return {"error": {"code": "UserError", "message": message}}
