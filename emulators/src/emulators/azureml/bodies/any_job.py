"""A job's REST body, of whatever kind it is. No I/O."""

from __future__ import annotations

from emulators.azureml.bodies import job_body, pipeline_body, sweep_body
from emulators.azureml.bodies.job_body import JobSpec
from emulators.azureml.bodies.pipeline_body import PipelineSpec
from emulators.azureml.bodies.sweep_body import SweepSpec
from emulators.azureml.kernel.models import Json

Spec = JobSpec | PipelineSpec | SweepSpec


def parse(name: str, properties: Json) -> Spec:
    """Parse the REST body of a job of any kind. Raises BadRequest with the wrong value and the allowed values."""
    match properties.get("jobType"):
        case "Pipeline":
            job_body.outputs_of(name, properties)
            return pipeline_body.parse(name, properties)
        case "Sweep":
            return sweep_body.parse(name, properties)
        case _:
            return job_body.parse(name, properties)
