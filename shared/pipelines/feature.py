"""Pipelines: a run whose job has several steps, each of which is a job in Azure ML.

workload.py is the kind of such a run, and decide.py follows the steps. shared/jobs/readers/pipeline.py reads a pipeline
as a job, before there is a run.
"""

from __future__ import annotations

from shared.kernel.parts import FeaturePart, View
from shared.pipelines.answers import StepAnswer, shown_steps
from shared.pipelines.model import PipelineSteps, StepState
from shared.pipelines.workload import PipelineJob
from shared.runs.features import Feature, RunOutline
from shared.runs.model import Run

STEPS = FeaturePart(
    "steps",
    PipelineSteps,
    column="pipeline",  # the previous version has the steps alone in the column `steps`
    view=View(list[StepAnswer], shown_steps),
    was_there=lambda row: row.get("steps", "") not in ("", "[]"),
)


def outline_of(run: Run) -> RunOutline:
    """Return the share of the steps that have completed."""
    pipeline = run.feature(PipelineSteps)
    if pipeline is None or not pipeline.steps:
        return RunOutline()
    completed = sum(step.state is StepState.COMPLETED for step in pipeline.steps)
    return RunOutline(done_share=completed / len(pipeline.steps))


FEATURE = Feature(parts=(STEPS,), workloads=(PipelineJob(),), outline=outline_of)
