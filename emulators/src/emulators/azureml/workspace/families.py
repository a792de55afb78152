"""Jobs with child jobs: the future children of a pipeline or a sweep, and where their outputs are stored."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from emulators.azureml.bodies import any_job, sampled
from emulators.azureml.bodies.job_body import DEFAULT_FOLDER, JobSpec, outputs_of
from emulators.azureml.bodies.pipeline_body import FromStep, PipelineSpec
from emulators.azureml.bodies.sweep_body import SweepSpec
from emulators.azureml.kernel.config import DEFAULT_DATASTORE, NAMESPACE
from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.models import Asset, Job, Json
from emulators.azureml.kernel.sources import ARTIFACTS, AssetRef, JobOutput
from emulators.azureml.workspace.steps import Pipeline, Steps, naming

DEEPEST = 10  # pipelines within pipelines; more means a circle


class Families:
    """Expands jobs into their child jobs. `find` returns a component's version."""

    def __init__(self, find: Callable[[AssetRef], Asset]) -> None:
        self.steps = Steps(find)

    def commands(self, name: str, properties: Json, depth: int = 0) -> Iterator[tuple[str, JobSpec]]:
        """Yield the command jobs of a job, itself or descendants, each with the name of its step. A sweep yields
        one trial.

        Raises BadRequest for any part that can't run, before anything starts.
        """
        if depth > DEEPEST:
            raise BadRequest(f"The pipeline has more than {DEEPEST} levels of pipelines within pipelines.")
        match spec := any_job.parse(name, properties):
            case PipelineSpec():
                yield from self._of_pipeline(name, properties, spec, depth)
            case SweepSpec():
                values = {key: sampled.example(parameter) for key, parameter in spec.space.items()}
                yield from self.commands(trial_name(name, 0), sampled.trial(name, 0, properties, values), depth + 1)
            case _:
                yield "", spec

    def _of_pipeline(
        self, name: str, properties: Json, spec: PipelineSpec, depth: int
    ) -> Iterator[tuple[str, JobSpec]]:
        pipeline = Pipeline(name, spec, shared(properties))

        def output_of(step: str, output: str) -> Json:
            return planned_output(name, step, output, self.steps.component(spec.steps[step]).outputs)

        for each in spec.conditions:
            if isinstance(each.value, FromStep) and "value" not in output_of(each.value.step, each.value.output):
                raise BadRequest(f"Step {each.name!r}: its condition is data; bind it to an output of type boolean.")
        for step in spec.steps.values():
            body, what = self.steps.body(pipeline, step, output_of), f"Step {step.name!r}: "
            with naming(what):
                below = list(self.commands(step_name(name, step.name), body, depth + 1))
            yield from ((what + where, spec) for where, spec in below)


def shared(properties: Json) -> Json:
    """Return the properties that a job passes to its child jobs."""
    return {"experimentName": properties.get("experimentName") or "Default"}


def step_name(pipeline: str, step: str) -> str:
    """Return the name of a step's job. It is always the same, so the job is created only once."""
    return str(uuid.uuid5(NAMESPACE, f"{pipeline}/{step}"))


def trial_name(sweep: str, number: int) -> str:
    return f"{sweep}_{number}"


def planned_output(pipeline: str, step: str, output: str, declared: object) -> Json:
    """Return an input's body for an output that is not written yet."""
    kinds = declared if isinstance(declared, dict) else {}
    if output not in kinds:
        raise BadRequest(f"Step {step!r} has no output {output!r}; it has: {among(kinds)}.")
    kind = kinds[output].stored_as
    folder = DEFAULT_FOLDER.replace("${{default_datastore}}", DEFAULT_DATASTORE)
    uri = folder.replace("${{name}}", step_name(pipeline, step)).replace("${{output_name}}", output)
    value = {"value": ""} if kinds[output].is_literal else {}
    return {"jobInputType": kind, "uri": uri.rstrip("/") if kind == "uri_file" else uri, **value}


def written_output(job: Job, output: str) -> Json:
    """Return an input's body for an output of an ended job. Without a path of its own, `artifacts` is the job's
    ./outputs and logs."""
    if output == ARTIFACTS and not job.properties["outputs"][output].get("uri"):
        ran = job.properties["properties"].get("azureml.reusedrunid", job.name)
        return {"jobInputType": "uri_folder", "uri": str(JobOutput(ran, ARTIFACTS, ""))}
    place = places_of(job)[output]
    return {"jobInputType": place["type"], "uri": place["uri"]}


def places_of(job: Job) -> dict[str, Json]:
    """Return the location and type of each of a job's outputs, by name."""
    own = {
        output.name: {"uri": str(output.location), "type": output.kind}
        for output in outputs_of(job.name, job.properties)
    }
    return {**own, **job.places}
