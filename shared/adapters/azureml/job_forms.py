"""How each kind of job goes to Azure ML. A new kind is a class, and one entry in FORMS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from shared.adapters.azureml import pipelines, sdk_job
from shared.adapters.azureml.document import document
from shared.jobs.problem import Problem
from shared.jobs.readers.pipeline import Step, steps
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import COMMAND, PIPELINE, JobSpec

Json = dict[str, Any]
# Registers an environment that a job only describes, and returns its id; returns one that the SDK has to register.
Register = Callable[[pipelines.Described], pipelines.Described]


class Checks(Protocol):
    """What the workspace answers about a job before the job is sent."""

    def find(self, path: str) -> Json | None:
        """The resource at this path; None if the workspace has none."""

    def preflight(self, job: Json) -> Json:
        """What the workspace lacks for this job, as `refusals`."""


class JobForm(Protocol):
    def problems(self, job: JobSpec) -> list[Problem]:
        """Everything that Azure ML's schema refuses in this job, whose code may still be a folder to register."""

    def refused_before_sending(self, job: JobSpec) -> list[Problem]:
        """What must not reach the SDK, such as a path that it would read on this machine."""

    def sendable(self, job: JobSpec, register: Register, workspace_id: str) -> Json:
        """The document to send."""

    def lacks(self, job: JobSpec, workspace: Checks) -> list[str]:
        """What the workspace lacks for this job."""


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
        return own + [f"Step {step.name!r}: {why}" for step in steps(job) for why in _step_lacks(step, workspace)]


FORMS: dict[str, JobForm] = {COMMAND: CommandForm(), PIPELINE: PipelineForm()}


def form_of(job: JobSpec) -> JobForm:
    """The form of this job. A kind that is refused before it is sent is checked as a command."""
    return FORMS.get(job.kind, FORMS[COMMAND])


def _step_lacks(step: Step, workspace: Checks) -> Iterator[str]:
    """What keeps a step from running: a registered component that is not there, or what its job lacks."""
    if step.component and not pipelines.has_component(workspace.find, step.component):
        yield f"component {place_text(step.component)} is not in the workspace."
    yield from form_of(step.job).lacks(step.job, workspace)


def _refusals(workspace: Checks, job: Json) -> list[str]:
    return [str(why) for why in workspace.preflight(job).get("refusals", [])]
