"""Why a run could not start now, as values: its data, its job, the workspace and the cluster."""

from __future__ import annotations

import logging
from dataclasses import replace

from shared.jobs.assets import assets, resolve
from shared.jobs.data import Data
from shared.jobs.kinds import kind_of
from shared.jobs.location import Location
from shared.jobs.ports import Jobs
from shared.jobs.spec import JobSpec, uses_own_environment
from shared.kernel.errors import Impossible, NotFound, Unavailable
from shared.runs.intake.parse_request import Asked
from shared.runs.model import Run
from shared.runs.ports import Capacity, Datasets, Reason, RunPorts
from shared.runs.progress.workloads import workload

log = logging.getLogger(__name__)

NEVER = ("unknown_cluster", "too_many_nodes")  # reasons that no waiting mends


def check_possible(jobs: Jobs, capacity: Capacity, run: Run) -> None:
    """Raise Impossible for a run that could never start: no such cluster or datastore, or more nodes than there are.

    What can't be asked now is not held against the run.
    """
    try:
        reasons = capacity.reasons(run.asked.request.cluster, workload(run).fewest_nodes(run))
        for value in run.asked.request.data.values():
            if isinstance(value.path, Location) and not value.path.workspace:
                jobs.place(value.path)
        never = [reason for reason in reasons if reason["code"] in NEVER] or _never(jobs, run.asked.request)
    except NotFound as exc:
        raise Impossible(str(exc), "bad_data") from exc
    except Unavailable as exc:
        log.warning("run %s: whether it can start could not be asked. %s", run.name, exc)
        return
    if never:
        raise Impossible(never[0]["message"], never[0]["code"])


def _never(jobs: Jobs, job: JobSpec) -> list[Reason]:
    """What a job of its own lacks, or what the schema refuses of a pipeline, which nothing read whole before; then what
    the workspace can't give."""
    wrong = _missing(job) if kind_of(job).runs_a_command else _refused(jobs, job)
    return wrong or _lacks(jobs, job)


def _missing(job: JobSpec) -> list[Reason]:
    """The fields without which no command runs. The rest of the schema is asked at the submission, for it takes seconds
    to import."""
    needed = {
        "command": (job.command, "Say what runs on each node."),
        "environment": (job.environment, "Name a registered one, or give an image."),
    }
    return [
        Reason(code="bad_job", message=f"The job has no {name}. {advice}")
        for name, (value, advice) in needed.items()
        if not value
    ]


def _refused(jobs: Jobs, job: JobSpec) -> list[Reason]:
    return [Reason(code="bad_job", message=f"{p.path}: {p.message}") for p in jobs.problems(job)]


def empty_mounts(asked: Asked) -> list[Reason]:
    """The empty mounts that a translated job reads from."""
    return [Reason(code="no_data", message=sentence) for sentence in (asked.written.absent if asked.written else ())]


def no_data(data: Data | None) -> str:
    """A sentence if the run's data in the drops container are missing, else nothing."""
    absent = data is not None and data.below_drops and data.single_file is None
    return f"There is nothing at {data.below_drops!r} in the drops container." if data and absent else ""


def data_reasons(datasets: Datasets, data: Data | None) -> list[Reason]:
    """Why a run can't have these data yet."""
    if data is None or not data.below_drops:
        return []
    if absent := no_data(data):
        return [Reason(code="no_data", message=absent)]
    content = datasets.of(data.drop) if data.drop else None
    if content and content.collecting:
        return [Reason(code="drop_open", message=f"Drop {data.drop} still collects uploads. {content.collecting}")]
    return []


def looked_over(ports: RunPorts, job: JobSpec, fewest: int) -> tuple[JobSpec, list[Reason]]:
    """The job with its asset ids, and why it could not start now."""
    reasons: list[Reason] = []
    original_job = job
    try:
        job = resolve(job, assets(ports.jobs, ports.trainers, job, register=False))
        reasons += _refused(ports.jobs, job)
        reasons += _lacks(ports.jobs, original_job)
        if job.cluster:
            reasons += ports.capacity.reasons(job.cluster, fewest)
    except Unavailable as exc:
        reasons.append(Reason(code="unavailable", message=str(exc)))
    return job, reasons


def _lacks(jobs: Jobs, job: JobSpec) -> list[Reason]:
    """What the workspace can't give the job. The environment of the trainers is left out: it is always there."""
    job = replace(job, environment="") if uses_own_environment(job) else job
    return [Reason(code="not_available", message=words) for words in jobs.lacks(job)]
