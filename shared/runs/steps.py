"""The steps of a pipeline, as a run records them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class StepState(StrEnum):
    """A step's state: not started, the state of its job, or skipped because the pipeline ended first."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One step of a pipeline: the names of the steps it needs, and its job. `why` explains a failure."""

    name: str
    state: StepState
    needs: tuple[str, ...] = ()
    job: str = ""
    began: datetime | None = None
    ended: datetime | None = None
    why: str = ""
    cluster: str = ""  # the step's own cluster; '' for the pipeline's cluster
    nodes: int = 1
