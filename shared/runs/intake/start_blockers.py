"""Why a run could not start now, as values: its data, its job, the workspace and the cluster."""

from __future__ import annotations

import logging
from typing import Any

from shared.jobs.assets import assets
from shared.jobs.data import Data
from shared.jobs.job import cluster, mapping, resolve, uses_own_environment
from shared.kernel.errors import Impossible, NotFound, Unavailable
from shared.runs.intake.parse_request import Asked
from shared.runs.model import Run
from shared.runs.ports import Reason
from shared.runs.progress.workloads import workload
from shared.system import System

log = logging.getLogger(__name__)

NEVER = ("unknown_cluster", "too_many_nodes")  # reasons that no waiting mends


def check_possible(system: System, run: Run) -> None:
    """Raise Impossible for a run that could never start: no such cluster or datastore, or more nodes than there are.

    What can't be asked now is not held against the run.
    """
    try:
        reasons = system.capacity.reasons(run.cluster, workload(run).fewest_nodes(run))
        for value in mapping(run.request.get("inputs")).values():
            path = str(value.get("path", "")) if isinstance(value, dict) else ""
            if path.startswith("azureml://datastores/"):
                system.jobs.place(path)
        never = [reason for reason in reasons if reason["code"] in NEVER] or _lacks(system, run.request)
    except NotFound as exc:
        raise Impossible(str(exc), "bad_data") from exc
    except Unavailable as exc:
        log.warning("run %s: whether it can start could not be asked. %s", run.name, exc)
        return
    if never:
        raise Impossible(never[0]["message"], never[0]["code"])


def empty_mounts(asked: Asked) -> list[Reason]:
    """The mounts of a Batch AI job that hold nothing."""
    return [Reason(code="no_data", message=sentence) for sentence in (asked.adopted.missing if asked.adopted else ())]


def no_data(data: Data | None) -> str:
    """A sentence if data in the drops container are not there, else nothing."""
    absent = data is not None and data.below_drops and data.single_file is None
    return f"There is nothing at {data.below_drops!r} in the drops container." if data and absent else ""


def data_reasons(system: System, data: Data | None) -> list[Reason]:
    """Why a run can't have these data yet."""
    if data is None or not data.below_drops:
        return []
    if absent := no_data(data):
        return [Reason(code="no_data", message=absent)]
    content = system.datasets.of(data.drop) if data.drop else None
    if content and content.collecting:
        return [Reason(code="drop_open", message=f"Drop {data.drop} still collects uploads. {content.collecting}")]
    return []


def looked_over(system: System, job: dict[str, Any], fewest: int) -> tuple[dict[str, Any], list[Reason]]:
    """The job with its ids, and why it could not start now."""
    reasons: list[Reason] = []
    asked = job
    try:
        ids = assets(system.jobs, system.trainers, job, register=False)
        job = resolve(job, ids.code, ids.environment, ids.code_digest)
        reasons += [Reason(code="bad_job", message=f"{p.path}: {p.message}") for p in system.jobs.problems(job)]
        reasons += _lacks(system, asked)
        if name := cluster(job):
            reasons += system.capacity.reasons(name, fewest)
    except Unavailable as exc:
        reasons.append(Reason(code="unavailable", message=str(exc)))
    return job, reasons


def _lacks(system: System, job: dict[str, Any]) -> list[Reason]:
    """What the workspace can't give the job. The environment of the trainers is left out: it is always there."""
    own = {"environment": None} if uses_own_environment(job) else {}
    return [Reason(code="not_available", message=words) for words in system.jobs.lacks({**job, **own})]
