"""The form in which each kind of job is sent to Azure ML. A new kind is one class and one entry in FORMS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from shared.adapters.azureml import pipelines, sdk_job
from shared.adapters.azureml.document import document
from shared.jobs.location import Location
from shared.jobs.problem import Problem
from shared.jobs.readers.pipeline import WrittenStep, steps
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import COMMAND, PIPELINE, DataInput, JobSpec

Json = dict[str, Any]
# Registers an environment described in a job and returns its id; an environment for the SDK is returned unchanged.
Register = Callable[[pipelines.Described], pipelines.Described]


class Checks(Protocol):
    """Questions to the workspace about a job before the job is sent."""

    def find(self, path: str) -> Json | None:
        """Return the resource at this path; None if it does not exist."""

    def find_in_registry(self, registry: str, path: str) -> Json | None:
        """Return the resource of a registry; None if it does not exist."""

    def preflight(self, job: Json) -> Json:
        """Return the workspace's reasons against this job, as `refusals`."""


class JobForm(Protocol):
    def problems(self, job: JobSpec) -> list[Problem]:
        """Return everything that Azure ML's schema refuses in this job. The job's code may still be an unregistered
        folder.
        """

    def refused_before_sending(self, job: JobSpec) -> list[Problem]:
        """Return the parts of a job that must not reach the SDK, such as a path to read on this machine."""

    def sendable(self, job: JobSpec, register: Register, workspace_id: str) -> Json:
        """Return the document to send."""

    def lacks(self, job: JobSpec, workspace: Checks) -> list[str]:
        """Return the job's needs that the workspace can't meet."""


class CommandForm:
    def problems(self, job: JobSpec) -> list[Problem]:
        return sdk_job.problems(document(replace(job, sweep=None)))

    def refused_before_sending(self, job: JobSpec) -> list[Problem]:
        return list(sdk_job.local_files(document(job)))

    def sendable(self, job: JobSpec, register: Register, _workspace_id: str) -> Json:
        return document(replace(job, environment=register(job.environment)))

    def lacks(self, job: JobSpec, workspace: Checks) -> list[str]:
        return _refusals(workspace, document(replace(job, sweep=None)))


class PipelineForm:
    def problems(self, job: JobSpec) -> list[Problem]:
        return pipelines.problems(job)

    def refused_before_sending(self, job: JobSpec) -> list[Problem]:
        return self.problems(job)

    def sendable(self, job: JobSpec, register: Register, workspace_id: str) -> Json:
        return pipelines.sendable(job, register, workspace_id)

    def lacks(self, job: JobSpec, workspace: Checks) -> list[str]:
        inputs = document(JobSpec(inputs=job.data)).get("inputs")
        own = _refusals(workspace, {"inputs": inputs}) if inputs else []
        found = steps(job)
        made = [at for each in (job, *(step.job for step in found)) for at in _written(each)]
        unmade = [replace(step, job=_without_made(step.job, made)) for step in found]
        return own + [f"Step {step.name!r}: {why}" for step in unmade for why in _step_lacks(step, workspace)]


FORMS: dict[str, JobForm] = {COMMAND: CommandForm(), PIPELINE: PipelineForm()}


def form_of(job: JobSpec) -> JobForm:
    """Return the form of this job. A kind that is refused before sending is checked as a command."""
    return FORMS.get(job.kind, FORMS[COMMAND])


def _written(job: JobSpec) -> list[Location]:
    """Return the places that the job's outputs name."""
    return [output.path for output in job.outputs.values() if isinstance(output.path, Location)]


def _without_made(job: JobSpec, made: Sequence[Location]) -> JobSpec:
    """Return a step without the inputs that lie where a step of the same pipeline writes: they come to be."""
    kept = {name: value for name, value in job.inputs.items() if not _is_made(value, made)}
    return job if len(kept) == len(job.inputs) else replace(job, inputs=kept)


def _is_made(value: object, made: Sequence[Location]) -> bool:
    if not isinstance(value, DataInput) or not isinstance(at := value.path, Location):
        return False
    return any(at.store == each.store and f"{at.path}/".startswith(f"{each.path.rstrip('/')}/") for each in made)


def _step_lacks(step: WrittenStep, workspace: Checks) -> Iterator[str]:
    """Yield the reasons why a step can't run: a missing registered component, or the needs of the step's job."""
    if step.component and not pipelines.has_component(workspace.find, step.component):
        yield f"component {place_text(step.component)} is not in the workspace; register it first."
    elif "//registries/" in (component := place_text(step.component)):
        missing = f"component {component} is not in the registry."
        there = pipelines.is_in_registry(workspace.find_in_registry, component)
        yield from _refusals(workspace, {"component": component}) or ([] if there else [missing])
    yield from form_of(step.job).lacks(step.job, workspace)


def _refusals(workspace: Checks, job: Json) -> list[str]:
    return [str(why) for why in workspace.preflight(job).get("refusals", [])]
