"""Pipelines: a run whose job has several steps, each of which is a job in Azure ML.

workload.py is the kind of such a run, and decide.py follows the steps. What a pipeline is as a job, before it is a run,
is in shared/jobs/readers/pipeline.py.
"""

from __future__ import annotations

from shared.kernel.parts import FeaturePart, View
from shared.pipelines.answers import StepAnswer, shown_steps
from shared.pipelines.model import PipelineSteps
from shared.pipelines.workload import PipelineJob
from shared.runs.features import Feature

STEPS = FeaturePart(
    "steps",
    PipelineSteps,
    column="pipeline",  # the previous version has the steps alone in the column `steps`
    view=View(list[StepAnswer], shown_steps),
    was_there=lambda row: row.get("steps", "") not in ("", "[]"),
)
FEATURE = Feature(parts=(STEPS,), workloads=(PipelineJob(),))
