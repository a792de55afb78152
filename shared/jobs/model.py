"""A job's status as Azure ML tells it, and a fault in a job."""

from __future__ import annotations

from dataclasses import dataclass

from shared.runs.model import RunState


@dataclass(frozen=True)
class JobStatus:
    """A job as Azure ML tells it now. `error` is its own account of a failure."""

    name: str
    state: RunState
    raw: str
    error: str = ""


@dataclass(frozen=True)
class Problem:
    """One fault in a job: where (a path like `limits.timeout`), what, and a stable code."""

    path: str
    message: str
    code: str = "bad_job"
