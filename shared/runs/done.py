"""Whether the task of a run's message is done."""

from __future__ import annotations

from shared.runs.decide import is_over
from shared.runs.find_run import find_run
from shared.runs.messages import ArchiveRun, CheckData, CheckHour, JobEvent, SubmitRun
from shared.runs.model import Run
from shared.runs.names import run_of_job
from shared.runs.ports import RunPorts


def is_submitted(ports: RunPorts, message: SubmitRun) -> bool:
    run = find_run(ports.runs, message.run)
    return run is not None and (is_over(run) or (run.cancel.asked_at is None and bool(run.jobs.job)))


def is_archived(ports: RunPorts, message: ArchiveRun) -> bool:
    return _archived(find_run(ports.runs, message.run))


def is_followed(ports: RunPorts, message: JobEvent) -> bool:
    """Whether the job's run is archived, or the job does not belong to a run."""
    run = find_run(ports.runs, run_of_job(message.job))
    return run is None or _archived(run)


def is_data_checked(ports: RunPorts, message: CheckData) -> bool:
    return _archived(find_run(ports.runs, message.data_of))


def is_hour_over(ports: RunPorts, message: CheckHour) -> bool:
    return message.hour not in ports.runs.hours()


def _archived(run: Run | None) -> bool:
    return run is not None and (run.archive.at is not None or run.archiving.gave_up_at is not None)
