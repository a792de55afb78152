"""Reasons against starting a run now: the data, the job, the workspace, and the cluster."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from shared.jobs.assets import assets, resolve
from shared.jobs.data import Data
from shared.jobs.kinds import kind_of
from shared.jobs.location import Location
from shared.jobs.ports import Jobs
from shared.jobs.spec import JobSpec, uses_own_environment
from shared.kernel.errors import Impossible, NotFound, Unavailable
from shared.runs.intake.parse_request import ParsedRequest
from shared.runs.model import Run
from shared.runs.ports import Capacity, Datasets, Reason, RunPorts
from shared.runs.progress.workloads import workload

log = logging.getLogger(__name__)

NEVER = ("unknown_cluster", "too_many_nodes")  # permanent reasons


def check_possible(jobs: Jobs, capacity: Capacity, run: Run) -> None:
    """Raise Impossible for a run that can never start, with every reason and the code of the first reason.

    A check that can't be made now does not fail the run.
    """
    never: list[Reason] = []
    for check in (partial(_no_cluster, capacity, run), partial(_no_place, jobs, run), partial(_never, jobs, run)):
        try:
            never += check()
        except NotFound as exc:
            never.append(Reason(code="bad_data", message=str(exc)))
        except Unavailable as exc:
            log.warning("run %s: whether it can start is not known. %s", run.name, exc)
    if never:
        raise Impossible(" ".join(dict.fromkeys(reason["message"] for reason in never)), never[0]["code"])


def _no_cluster(capacity: Capacity, run: Run) -> list[Reason]:
    reasons = capacity.reasons(run.asked.request.cluster, workload(run).fewest_nodes(run))
    return [reason for reason in reasons if reason["code"] in NEVER]


def _no_place(jobs: Jobs, run: Run) -> list[Reason]:
    """The reasons for data in missing datastores."""
    reasons: list[Reason] = []
    for value in run.asked.request.data.values():
        if isinstance(value.path, Location) and not value.path.workspace:
            try:
                jobs.place(value.path)
            except NotFound as exc:
                reasons.append(Reason(code="bad_data", message=str(exc)))
    return reasons


def _never(jobs: Jobs, run: Run) -> list[Reason]:
    """Permanent problems of the job.

    These are missing fields of a plain job, schema errors of a pipeline (only here is it checked as a whole), and needs
    that the workspace can't meet.
    """
    job = run.asked.request
    wrong = _missing(job) if kind_of(job).runs_a_command else _refused(jobs, job)
    return [*wrong, *_lacks(jobs, job)]


def _missing(job: JobSpec) -> list[Reason]:
    """Reasons for missing fields without which no command runs.

    The full schema is checked only at the submission, because its import takes seconds.
    """
    needed = {
        "command": (job.command, "Give the command that runs on each node."),
        "environment": (job.environment, "Name a registered environment, or give an image."),
    }
    return [
        Reason(code="bad_job", message=f"The job has no {name}. {advice}")
        for name, (value, advice) in needed.items()
        if not value
    ]


def _refused(jobs: Jobs, job: JobSpec) -> list[Reason]:
    return [Reason(code="bad_job", message=f"{p.path}: {p.message}") for p in jobs.problems(job)]


def empty_mounts(asked: ParsedRequest) -> list[Reason]:
    """Reasons for empty mounts from which a translated job reads."""
    return [Reason(code="no_data", message=sentence) for sentence in (asked.written.absent if asked.written else ())]


def no_data(data: Data | None) -> str:
    """A sentence if the run's data is missing from the drops container, '' otherwise."""
    absent = data is not None and data.below_drops and data.single_file is None
    return f"There is nothing at {data.below_drops!r} in the drops container." if data and absent else ""


def data_reasons(datasets: Datasets, data: Data | None) -> list[Reason]:
    """Reasons why a run can't use this data yet."""
    if data is None or not data.below_drops:
        return []
    if absent := no_data(data):
        return [Reason(code="no_data", message=absent)]
    content = datasets.of(data.drop) if data.drop else None
    if content and content.collecting:
        return [Reason(code="drop_open", message=f"Drop {data.drop} is still collecting uploads. {content.collecting}")]
    return []


def checked_job(ports: RunPorts, job: JobSpec, fewest: int) -> tuple[JobSpec, list[Reason]]:
    """The job with asset ids, and the reasons against starting now."""
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
    """The job's needs that the workspace can't meet. The trainers' own environment is always available."""
    job = replace(job, environment="") if uses_own_environment(job) else job
    return [Reason(code="not_available", message=words) for words in jobs.lacks(job)]
