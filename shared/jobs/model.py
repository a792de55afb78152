"""A job's status, failure and times, as reported by Azure ML."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from shared.kernel.storage import Place


class JobState(StrEnum):
    """A job's state, reduced from Azure ML's states. Each is also the state of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELED})


class FailureCode(StrEnum):
    """Why a job failed, for use by code. The adapter derives the code from the backend's message."""

    LOST_NODES = "lost_nodes"  # the job lost its nodes; another job can continue
    PROCESS = "process"  # a process of the job ended with an exit code
    IMAGE = "image"  # the environment's image could not be built or pulled
    CLUSTER = "cluster"  # the cluster is broken
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> FailureCode | None:
        """A code of a later version in a shared row."""
        return cls.OTHER if isinstance(value, str) else None


class JobFailure(msgspec.Struct, frozen=True, array_like=True):
    """Why a job failed. `summary` is the backend's message on one line, without the process's own output.

    `exit_code` is the process's exit code, 0 if the message has none. `log` is the name of the log that explains the
    failure, '' if unknown, and `tail` the log's last lines. `package` is a package that the environment requires but no
    package index offers.
    """

    code: FailureCode = FailureCode.OTHER
    summary: str = ""
    exit_code: int = 0
    log: str = ""
    package: str = ""
    tail: str = ""


UNKNOWN_FAILURE = JobFailure()


@dataclass(frozen=True)
class StepStatus:
    """The status of a started pipeline step: the name in the pipeline, and the job.

    `error` is the backend's message on one line.
    """

    name: str
    job: str
    state: JobState
    began: datetime | None = None
    ended: datetime | None = None
    error: str = ""


@dataclass(frozen=True)
class JobStatus:
    """A job's current status in Azure ML.

    `error` is Azure ML's message about a failure or a cancel, and `failure` the corresponding code. `steps` are the
    started steps of a pipeline, None if they were not requested, as in a list of jobs.
    """

    name: str
    state: JobState
    raw: str
    error: str = ""
    steps: tuple[StepStatus, ...] | None = ()
    failure: JobFailure = UNKNOWN_FAILURE


class JobFolderPart(StrEnum):
    """A part of the files in a job's own folder."""

    LOGS = "logs"  # output of the job's processes, one file per rank
    OUTPUTS = "outputs"  # files that the job wrote to ./outputs
    REST = "rest"  # files that the job saved through MLflow


@dataclass(frozen=True)
class JobFolder:
    """A job's folder, given by the compute backend.

    `logs` and `outputs` are folders in it, ending with '/'. The backend itself writes files whose names start with one
    of `own`.
    """

    place: Place
    logs: str
    outputs: str
    own: tuple[str, ...] = ()

    def inside(self, part: JobFolderPart) -> Place:
        """The folder with this part; for the rest, the whole folder."""
        below = {JobFolderPart.LOGS: self.logs, JobFolderPart.OUTPUTS: self.outputs}.get(part, "")
        return Place(self.place.container, f"{self.place.prefix}{below}")

    def part_of(self, name: str) -> JobFolderPart | None:
        """The part to which this name in the folder belongs; None for a file of the backend."""
        if name.startswith(self.logs):
            return JobFolderPart.LOGS
        if name.startswith(self.outputs):
            return JobFolderPart.OUTPUTS
        return None if name.startswith(self.own) else JobFolderPart.REST


@dataclass(frozen=True)
class JobTimes:
    """When Azure ML last gave the job its nodes, and when the job ended. None if not yet, or unknown."""

    began: datetime | None = None
    ended: datetime | None = None
