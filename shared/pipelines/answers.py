"""The steps of a pipeline in the answers of the HTTP API."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from shared.kernel.encode import Json, plain
from shared.pipelines.model import StepState
from shared.pipelines.workload import steps_of
from shared.runs.model import Run


class StepAnswer(Struct):
    """A step of a pipeline. `state`: waiting, skipped (never begun), or the state of the step's job."""

    step: str
    state: StepState
    needs: list[str]
    job: str
    began: datetime | None
    ended: datetime | None
    why: str


def shown_steps(run: Run) -> list[Json]:
    return [
        {
            "step": step.name,
            "state": step.state,
            "needs": step.needs,
            "job": step.job,
            "began": plain(step.began),
            "ended": plain(step.ended),
            "why": step.why,
        }
        for step in steps_of(run)
    ]
