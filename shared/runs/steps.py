"""The steps of a pipeline's run."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class StepState(StrEnum):
    """What a step of a pipeline is: not begun, as its job is, or never begun because the pipeline ended before."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"


class Step(msgspec.Struct, frozen=True, array_like=True):
    """A step of a pipeline, the steps that it needs, and the job that it became; `why` says how it failed."""

    name: str
    state: StepState
    needs: tuple[str, ...] = ()
    job: str = ""
    began: datetime | None = None
    ended: datetime | None = None
    why: str = ""
    cluster: str = ""  # its own, '' for the pipeline's
    nodes: int = 1
