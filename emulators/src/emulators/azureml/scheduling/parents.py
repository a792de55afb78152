"""Parent jobs: each live parent has a task that looks for work after every change of a job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from emulators.azureml.kernel.errors import ArmError, DataError
from emulators.azureml.kernel.models import TERMINAL, Job, Json, Status, timestamp
from emulators.azureml.running.context import Site, run_place
from emulators.azureml.workspace.workspace import Workspace

log = logging.getLogger(__name__)

LIVE = frozenset(Status) - TERMINAL
Metrics = Callable[[str, str], Awaitable[list[float]]]  # a job and a metric -> its values, in order


@dataclass(frozen=True)
class End:
    """The end of a parent: the final status, and the error of a failure."""

    status: Status = Status.COMPLETED
    error: str = ""


@dataclass(frozen=True)
class Means:
    """The objects that drivers of parents use. `cancel` asks a job to end."""

    workspace: Workspace
    site: Site
    cancel: Callable[[str], object]
    metrics: Metrics


class Driver(Protocol):
    """Runs the child jobs of one parent."""

    log_name: str
    look_seconds: float | None  # after which it checks again without a change

    async def step(self) -> tuple[End | None, list[str]]:
        """Do every action that is possible now. Returns the end of the parent, or None before the end, and lines
        for the parent's log."""


class ParentLog:
    """A parent's log, which continues after a restart."""

    def __init__(self, means: Means, job: Job, name: str) -> None:
        self._blobs, self._place, self._length = means.site.blobs, run_place(job.name, name), 0

    async def open(self) -> None:
        self._length = await self._blobs.open_log(self._place)

    async def write(self, lines: list[str]) -> None:
        if lines:
            data = "".join(f"[{timestamp()[:19]}Z] {line}\n" for line in lines).encode()
            self._length = await self._blobs.append(self._place, data, self._length)


class Parents:
    """Runs all live parents. `drivers` creates the driver of a job, by the job's kind."""

    def __init__(self, means: Means, drivers: dict[str, Callable[[Means, Job], Driver]]) -> None:
        self._means = means
        self._drivers = drivers
        self._wakes: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def tend(self) -> None:
        """Start a task for each new parent, and make the other tasks check again."""
        for job in self._means.workspace.on_cluster("", LIVE):
            if job.name in self._wakes:
                self._wakes[job.name].set()
                continue
            self._wakes[job.name] = asyncio.Event()
            task = asyncio.create_task(self._attend(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop every task. The next start continues the parents."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _attend(self, job: Job) -> None:
        try:
            end = await self._run(job)
        except (ArmError, DataError) as error:
            end = End(Status.FAILED, str(error))
        except Exception:  # outermost: a fault of ours must end the job, not leave it running for ever
            log.exception("job %s broke", job.name)
            end = End(Status.FAILED, "Internal error of the control plane; its log has the traceback.")
        finally:
            self._wakes.pop(job.name, None)
        self._end(job, end)

    async def _run(self, job: Job) -> End:
        driver = self._drivers[job.kind](self._means, job)
        told = ParentLog(self._means, job, driver.log_name)
        await told.open()
        self._begin(job, driver.log_name)
        wake = self._wakes[job.name]
        while True:
            wake.clear()
            end, lines = await driver.step()
            await told.write(lines)
            if end:
                return end
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(driver.look_seconds):
                    await wake.wait()

    def _begin(self, job: Job, log_name: str) -> None:
        workspace = self._means.workspace
        for status in (Status.QUEUED, Status.PREPARING, Status.RUNNING):
            if job.status in (Status.NOT_STARTED, Status.QUEUED, Status.PREPARING):
                started = timestamp() if status is Status.RUNNING else None
                workspace.set_status(job, status, started=started, logs=[log_name])

    def _end(self, job: Job, end: End) -> None:
        workspace = self._means.workspace
        error: Json | None = {"error": {"code": "UserError", "message": end.error}} if end.error else None
        status = Status.CANCELED if job.status is Status.CANCEL_REQUESTED else end.status
        if status is Status.CANCELED and job.status is not Status.CANCEL_REQUESTED:
            workspace.set_status(job, Status.CANCEL_REQUESTED, error=error)
        elif status is Status.COMPLETED:
            workspace.set_status(job, Status.FINALIZING)
        workspace.set_status(job, status, ended=timestamp(), error=error or job.error)
