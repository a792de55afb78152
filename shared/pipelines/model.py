"""The steps of a pipeline in a run's record: one column of the run's row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec


class StepState(StrEnum):
    """The state of a pipeline's step: not begun, the state of the job, or never begun because the pipeline ended
    before.
    """

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One step of a pipeline: the names of the preceding steps, and the job. `why` explains a failure."""

    name: str
    state: StepState
    needs: tuple[str, ...] = ()
    job: str = ""
    began: datetime | None = None
    ended: datetime | None = None
    why: str = ""
    cluster: str = ""  # the step's own cluster; '' for the pipeline's cluster
    nodes: int = 1


@dataclass(frozen=True)
class PipelineSteps:
    """The steps of a run that is a pipeline, in file order. A run without this part is not a pipeline."""

    steps: tuple[Step, ...] = ()
