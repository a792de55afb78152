"""What a model's proof contains of a job's environment variables."""

from __future__ import annotations

from shared.jobs.readers.variables import NOT_RECORDED, without_values
from shared.jobs.spec import PIPELINE, JobSpec


def test_every_step_of_a_pipeline_keeps_the_names_alone() -> None:
    """In all steps of a pipeline, nested steps too, values are not recorded unless they are harmless."""
    step = {"command": "echo", "environment_variables": {"HF_TOKEN": "secret", "TZ": "UTC"}}
    job = JobSpec(kind=PIPELINE, rest={"jobs": {"a": step, "b": {"jobs": {"c": step}}}}, variables={"KEY": "secret"})
    told = without_values(job)
    hidden = {"command": "echo", "environment_variables": {"HF_TOKEN": NOT_RECORDED, "TZ": "UTC"}}
    assert told.rest == {"jobs": {"a": hidden, "b": {"jobs": {"c": hidden}}}}
    assert told.variables == {"KEY": NOT_RECORDED}
