"""The types of jobs: how the REST body of each is parsed, and the type of its run. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulators.azureml.bodies import job_body, pipeline_body, sweep_body
from emulators.azureml.bodies.job_body import JobSpec
from emulators.azureml.bodies.pipeline_body import PipelineSpec
from emulators.azureml.bodies.sweep_body import SweepSpec
from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import Json

Spec = JobSpec | PipelineSpec | SweepSpec


@dataclass(frozen=True)
class JobType:
    """A `jobType`. `parse` reads the properties of such a job, and `run_type` is the type in run history."""

    parse: Callable[[str, Json], Spec]
    run_type: str


COMMAND = JobType(job_body.parse, "azureml.scriptrun")
JOB_TYPES = {
    "Command": COMMAND,
    "Pipeline": JobType(pipeline_body.parse, "azureml.PipelineRun"),
    "Sweep": JobType(sweep_body.parse, "hyperdrive"),
}
INSTEAD = {
    "AutoML": "Submit a command job that trains.",
    "Spark": "Submit a command job whose environment has pyspark.",
}


def parse(name: str, properties: Json) -> Spec:
    """Parse the REST body of a job of any type. Raises BadRequest with the wrong value and the allowed values."""
    kind = properties.get("jobType")
    job_type = JOB_TYPES.get(kind) if isinstance(kind, str) else None
    if job_type is None:
        *most, last = JOB_TYPES
        supported = f"{', '.join(most)} and {last}"
        instead = INSTEAD.get(str(kind), "")
        raise BadRequest(f"jobType {kind!r:.80} is not supported here; supported: {supported}. {instead}".rstrip())
    return job_type.parse(name, properties)
