"""A pipeline as Azure ML takes it, and how its steps stand: what the other adapters do for one job, for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from shared.adapters.azureml import sdk_job
from shared.adapters.azureml.document import document
from shared.adapters.translation import without_secrets
from shared.jobs.model import Problem, StepStatus, state_of
from shared.jobs.readers.pipeline import steps, with_steps
from shared.jobs.spec import Environment, JobSpec

_NOT_A_PIPELINES = ("limits", "resources", "environment_variables")  # which each step has instead
_AN_ADDRESS = "https://account.blob.core.windows.net/sent/"  # in place of one that only the workspace knows
_UNREGISTERED = "azureml:unregistered:1"
Described = str | Environment
Json = dict[str, Any]


def sendable(job: JobSpec, registered: Callable[[Described], Described], workspace_id: str) -> Json:
    """The pipeline's document with what holds for all in each step; `registered` gives the id of an environment that a
    step describes."""

    def filled(step: JobSpec) -> JobSpec:
        return replace(
            step,
            code=sdk_job.full_code(step.code, workspace_id),
            environment=registered(step.environment),
            variables={**job.variables, **step.variables},
            timeout_seconds=step.timeout_seconds or job.timeout_seconds,
        )

    made = document(with_steps(job, filled))
    named = {name: {**body, "display_name": name} for name, body in made["jobs"].items()}  # by which they are found
    return {key: value for key, value in made.items() if key not in _NOT_A_PIPELINES} | {"jobs": named}


def problems(job: JobSpec) -> list[Problem]:
    """What Azure ML's schema finds wrong with the pipeline, and every place where it names a local file."""
    if local := list(_local_files(job)):
        return local
    return sdk_job.problems(sendable(with_steps(job, _as_registered), _at_an_address, sdk_job.UNRESOLVED))


def _as_registered(step: JobSpec) -> JobSpec:
    return replace(step, code=_UNREGISTERED if step.code else "")


def _at_an_address(environment: Described) -> Described:
    if isinstance(environment, Environment) and environment.context.startswith("azureml://"):
        return replace(environment, context=_AN_ADDRESS)
    return environment


def _local_files(job: JobSpec) -> Iterator[Problem]:
    for step in steps(job):
        for problem in sdk_job.local_files(document(_as_registered(step.job))):
            yield Problem(f"jobs.{step.name}.{problem.path}", problem.message)


def step_statuses(children: Iterable[Json]) -> tuple[StepStatus, ...]:
    """The steps that have begun, of run history's children of a pipeline, the newest first."""
    newest: dict[str, StepStatus] = {}
    for child in children:
        name = str(child.get("displayName") or "")
        error = ((child.get("error") or {}).get("error") or {}).get("message") or ""
        newest.setdefault(
            name,
            StepStatus(
                name,
                str(child["runId"]),
                state_of(str(child.get("status") or "")),
                moment(child.get("startTimeUtc")),
                moment(child.get("endTimeUtc")),
                without_secrets(str(error)),
            ),
        )
    return tuple(newest.values())


def moment(text: Any) -> datetime | None:
    """A time of run history's, as its contract has it: ISO 8601, perhaps without a zone."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
