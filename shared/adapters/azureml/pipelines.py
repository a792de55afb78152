"""A pipeline for Azure ML, and the state of its steps: for each step, the work of the adapters for single jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from shared.adapters.azureml import sdk_job
from shared.adapters.azureml.document import document
from shared.adapters.azureml.failures import summary
from shared.adapters.translation import without_secrets
from shared.jobs.location import Asset, Location
from shared.jobs.model import StepStatus
from shared.jobs.problem import Problem
from shared.jobs.readers.job_status import state_of
from shared.jobs.readers.pipeline import steps, with_steps
from shared.jobs.readers.pipeline_document import DEEPEST
from shared.jobs.readers.place_text import place_text, read_place
from shared.jobs.spec import PIPELINE, Environment, JobSpec
from shared.kernel.errors import Unavailable

_NOT_A_PIPELINES = ("limits", "resources", "environment_variables")  # each step has its own
_AN_ADDRESS = "https://account.blob.core.windows.net/sent/"  # stands in for a URL that only the workspace knows
_COMPONENT = re.compile(r"(?P<name>[\w.-]+)(?::(?P<version>[\w.-]+)|@\w+)?")
_IN_REGISTRY = re.compile(
    r"azureml://registries/(?P<registry>[\w.-]+)/components/(?P<name>[\w.-]+)"
    r"(?:/versions/(?P<version>[\w.-]+)|/labels/[\w.-]+)?/?"
)
_UNREGISTERED = Asset("unregistered:1")
Described = str | Asset | Environment
Json = dict[str, Any]


def sendable(job: JobSpec, registered: Callable[[Described], Described], workspace_id: str) -> Json:
    """Return the pipeline's document, with the pipeline-wide settings repeated in each step.

    `registered` returns the id of an environment that a step describes.
    """

    def filled(step: JobSpec) -> JobSpec:
        return replace(
            step,
            code=read_place(sdk_job.full_code(place_text(step.code), workspace_id)),
            environment=registered(step.environment),
            variables={**job.variables, **step.variables},
            timeout_seconds=step.timeout_seconds or job.timeout_seconds,
        )

    made = document(with_steps(job, filled))
    return {key: value for key, value in made.items() if key not in _NOT_A_PIPELINES} | {"jobs": _named(made["jobs"])}


def _named(jobs: Json) -> Json:
    """Return the steps with the display names by which their jobs are found."""
    made = {}
    for name, body in jobs.items():
        made[name] = {**body, "display_name": name}
        if isinstance(component := body.get("component"), dict) and isinstance(inner := component.get("jobs"), dict):
            made[name]["component"] = {**component, "jobs": _named(inner)}
    return made


def problems(job: JobSpec) -> list[Problem]:
    """Return what Azure ML's schema refuses in the pipeline, and every place where the pipeline names a local file."""
    if local := list(_local_files(job)):
        return local
    made = sendable(with_steps(job, _as_registered), _at_an_address, sdk_job.UNRESOLVED)
    return sdk_job.problems(made) or sdk_job.misfits(made)


def _as_registered(step: JobSpec) -> JobSpec:
    return replace(step, code=_UNREGISTERED if step.code else "")


def _at_an_address(environment: Described) -> Described:
    if isinstance(environment, Environment) and isinstance(environment.context, Location):
        return replace(environment, context=_AN_ADDRESS)
    return environment


def _local_files(job: JobSpec) -> Iterator[Problem]:
    for step in steps(job):
        for problem in sdk_job.local_files(document(_as_registered(step.job))):
            yield Problem(f"jobs.{step.name}.{problem.path}", problem.message)


def has_component(find: Callable[[str], Json | None], named: str | Asset) -> bool:
    """Return whether the workspace has this component. A component of a registry, or with a full id, is assumed to
    exist.
    """
    if not (match := _COMPONENT.fullmatch(str(named))):
        return True
    version = f"/versions/{match['version']}" if match["version"] else ""
    return find(f"components/{match['name']}{version}") is not None


def is_in_registry(find: Callable[[str, str], Json | None], component: str) -> bool:
    """Return whether the registry has this component. `find` takes the registry and a path below the registry. A
    component without a version, or with a label, needs any version.

    A registry that does not answer now, or refuses the app, counts as one that has the component: Azure ML looks again
    at the submission.
    """
    if not (match := _IN_REGISTRY.fullmatch(component)):
        return True
    version = f"/versions/{match['version']}" if match["version"] else ""
    try:
        return find(match["registry"], f"components/{match['name']}{version}") is not None
    except Unavailable:
        return True


def step_statuses(
    children_of: Callable[[str], Iterable[Json]], job: str, pipelines: Collection[str], above: str = ""
) -> Iterator[StepStatus]:
    """Yield the started steps from run history's children of a pipeline, newest first; inner steps follow.

    `pipelines` are the steps that are pipelines according to the job; steps further in are found from their runs.
    """
    newest: dict[str, Json] = {}
    for child in children_of(job):
        newest.setdefault(str(child.get("displayName") or ""), child)
    for name, child in newest.items():
        yield _step_status(f"{above}{name}", child)
    for name, child in newest.items():
        is_pipeline = name in pipelines or str(child.get("runType")).lower().endswith("pipelinerun")
        if is_pipeline and above.count(".") < DEEPEST:
            yield from step_statuses(children_of, str(child["runId"]), (), f"{above}{name}.")


def _step_status(name: str, run: Json) -> StepStatus:
    error = ((run.get("error") or {}).get("error") or {}).get("message") or ""
    return StepStatus(
        name,
        str(run["runId"]),
        state_of(str(run.get("status") or "")),
        moment(run.get("startTimeUtc")),
        moment(run.get("endTimeUtc")),
        summary(without_secrets(str(error))),
    )


def pipelines_in(answer: Json) -> set[str]:
    """Return a pipeline's nested pipelines, from Resource Manager's JSON."""
    jobs = answer["properties"].get("jobs") or {}
    return {name for name, body in jobs.items() if str(body.get("type")).lower() == PIPELINE}


def moment(text: Any) -> datetime | None:
    """Parse a time of run history: by its contract ISO 8601, possibly without a zone."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
