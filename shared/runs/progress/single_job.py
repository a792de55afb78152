"""A run that is one job at a time, the first under the run's own name.

Azure ML queues a job again that lost its nodes, mostly. Sometimes it lets it fail, saying so: then a further job goes
on from the checkpoints, which lie where the first one left them, as long as the run's resubmissions last.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from shared.jobs.assets import assets
from shared.jobs.model import JobState, JobStatus
from shared.jobs.ports import HasJobs, HasTrainers
from shared.jobs.spec import HOUR_PROPERTY, JobSpec, resolve
from shared.kernel.errors import Impossible
from shared.kernel.has import HasClock
from shared.runs.decide import first_line, is_over, overdue, why_step
from shared.runs.model import FINAL, Moment, Placed, Run, RunState
from shared.runs.names import hour_of, plain_job
from shared.runs.node_use import Use, by_place, use_of_one_job
from shared.runs.ports import HasRendezvous, HasRuns
from shared.runs.progress.workload import Look, MembersView, Seen, Submitted

PREEMPTED = re.compile(r"\W*(PreemptionError\b|Nodes of this job got pre-?empted)", re.IGNORECASE)
LEAST_SECONDS = 60  # a job that may run for less is not sent
MISSING_FOR = timedelta(days=1)  # a job that can't be found may be in a workspace that the settings don't name now


class Ports(HasClock, HasJobs, HasTrainers, HasRuns, HasRendezvous, Protocol):
    """What is needed here from outside."""


class Plain:
    def jobs(self, run: Run) -> dict[int, str]:
        return {number - 1: plain_job(run.name, number) for number in range(1, run.jobs.number + 1)}

    def live_jobs(self, run: Run) -> list[str]:
        return [_job(run)]

    def on_nodes(self, run: Run) -> set[str]:
        return {_job(run)} if run.progress.state is RunState.RUNNING else set()

    def request(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        request = replace(for_every_job(run, run.asked.request), name=job)
        if run.is_steered:
            request = replace(request, cluster=run.on_cluster)
        if run.jobs.number > 1 and (left := _seconds_left(run, now)) is not None:
            return replace(request, timeout_seconds=max(LEAST_SECONDS, left))
        return request

    def fewest_nodes(self, run: Run) -> int:
        return run.asked.nodes

    def losses(self, run: Run) -> int:
        return max(run.progress.attempts - 1, 0)

    def uses(self, run: Run, now: datetime) -> list[Use]:
        return by_place(use_of_one_job(run, now), run.jobs.places)

    def bounds(self, run: Run) -> tuple[int, int]:
        return 0, run.asked.resubmissions

    def overdue(self, run: Run, now: datetime) -> str | None:
        return overdue(run, now)

    def can_move(self, run: Run) -> bool:
        return True

    def members(self, run: Run) -> MembersView | None:
        return None

    def logs_to_mlflow(self, run: Run) -> bool:
        return True

    def jobs_change(self, run: Run) -> bool:
        return False

    def can_wait(self, run: Run, told: RunState, scarce: bool) -> bool:
        return told is run.progress.state or (told not in FINAL and scarce)

    def worth_a_look(self, run: Run, seen: Seen) -> bool:
        return any(status is None or RunState(status.state) is not run.progress.state for status in seen.values())

    def submit(self, ports: Ports, run: Run) -> Submitted:
        ids = assets(ports.jobs, ports.trainers, run.asked.request)
        job = self.request(run, _job(run), ports.rendezvous, ports.clock())
        answer = ports.jobs.submit(resolve(job, ids.code, ids.environment, ids.code_digest))
        return Submitted(ids, (_job(run),), answer.state is JobState.QUEUED)

    def sent(self, run: Run, jobs: tuple[str, ...]) -> dict[str, Any]:
        return {"resubmit": False, "job": _job(run)} if run.jobs.resubmit and _job(run) in jobs else {}

    def look(self, run: Run, seen: Seen, now: datetime) -> Look | None:
        status = seen.get(_job(run))
        if run.jobs.resubmit:
            return self._look_at_further(run, status, now)
        if _job(run) not in seen:
            return None
        if status is None:
            if run.progress.state is RunState.RECEIVED or now - run.progress.history[-1].at < MISSING_FOR:
                return None
            return Look(RunState.FAILED, f"Azure ML has no job {_job(run)} any more.")
        if status.state is JobState.CANCELED and run.jobs.moves_to and run.cancel.asked_at is None:
            return _moved(run, now)
        if status.state is JobState.FAILED:
            if lost_its_nodes(status):
                return _after_a_loss(run, first_line(status.error), now)
            words = first_line(status.error) or "The job failed."
            return Look(RunState.FAILED, words, failed_job=_job(run), error=status.error)
        return Look(RunState(status.state), status.error or why_step(run, status, now))

    def _look_at_further(self, run: Run, status: JobStatus | None, now: datetime) -> Look:
        if status is not None:  # it was sent, and whoever sent it died before saying so
            new_look = self.look(run.changed(resubmit=False), {status.name: status}, now)
            changes = {"resubmit": False, "job": _job(run)}
            return (
                replace(new_look, changes=changes | new_look.changes)
                if new_look
                else Look(run.progress.state, changes=changes)
            )
        if run.cancel.asked_at is not None:
            return Look(RunState.CANCELED, run.cancel.why or "Canceled before its next job was sent.")
        return Look(run.progress.state)

    def act(self, ports: Ports, run: Run, look: Look) -> tuple[str, ...]:
        if is_over(run) or not run.jobs.resubmit:
            return ()
        jobs = self.submit(ports, run).jobs
        now = ports.runs.get(run.name).value
        if now.cancel.asked_at is not None or is_over(now):  # while the job was on its way
            self.cancel(ports, now)
        return jobs

    def cancel(self, ports: Ports, run: Run) -> None:
        ports.jobs.cancel(_job(run))

    def evict(self, ports: Ports, run: Run, index: int) -> str:
        raise Impossible(f"Run {run.name} is one job; only members of an elastic run can be evicted.", "not_elastic")

    def log_folder(self, run: Run, job: str) -> str:
        return f"logs/{_attempt(run, job)}"

    def output_folder(self, run: Run, job: str) -> str:
        return f"outputs/{_attempt(run, job)}"

    def ranks(self, run: Run) -> list[int] | None:
        return None

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        return _job(run), rank


def lost_its_nodes(status: JobStatus) -> bool:
    """Whether a job failed because its nodes were taken, in Azure ML's own words, and not in those of a script.

    https://github.com/Azure/MachineLearningNotebooks/issues/1242 has them.
    """
    return bool(PREEMPTED.match(status.error))


def _after_a_loss(run: Run, words: str, now: datetime) -> Look:
    """A further job, if one may follow. `words` are Azure ML's."""
    if run.cancel.asked_at is not None:
        return Look(RunState.CANCELED, run.cancel.why or "Canceled as asked.")
    used, left = run.jobs.number - 1, _seconds_left(run, now)
    spent = used >= run.asked.resubmissions and not run.is_steered
    if spent or (left is not None and left < LEAST_SECONDS):
        end = _count(used) if spent else "its time limit is used up."
        why = f"Its nodes were taken, and {end}"
        return Look(RunState.FAILED, why, failed_job=_job(run), error=why)
    why = f"Its nodes were taken; job {run.jobs.number + 1} goes on from its checkpoints. Azure ML: {words}"
    moved = _moved(run, now).changes if run.jobs.moves_to else {}
    return Look(RunState.QUEUED, why, {"job_number": run.jobs.number + 1, "resubmit": True} | moved)


def _moved(run: Run, now: datetime) -> Look:
    """The further job of a run that ended its job to go on elsewhere."""
    cluster = run.jobs.moves_to
    why = f"Job {run.jobs.number + 1} goes on from its checkpoints on {cluster}. {run.jobs.moves_why}"
    changes: dict[str, Any] = {"job_number": run.jobs.number + 1, "resubmit": True, "moves_to": "", "moves_why": ""}
    if run.progress.state is RunState.QUEUED:  # no step, but to be known
        changes["history"] = (*run.progress.history, Moment(RunState.QUEUED, now, why))
    return Look(RunState.QUEUED, why, {**changes, "places": (*run.jobs.places, Placed(now, cluster))})


def _seconds_left(run: Run, now: datetime) -> int | None:
    """Seconds left of the run's time limit, which all its jobs share; None without one."""
    limit = run.asked.request.timeout_seconds
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), now)
    return limit - int((now - began).total_seconds()) if limit else None


def _count(used: int) -> str:
    return f"all {used} resubmissions are used." if used else "no job may follow: its route allows no resubmissions."


def _job(run: Run) -> str:
    return plain_job(run.name, run.jobs.number)


def _attempt(run: Run, job: str) -> str:
    """The folder of a job that others followed; the last one's files lie where they always do."""
    return "" if job == _job(run) else f"attempt-{job.removeprefix(run.name).removeprefix('-a') or 1}/"


def for_every_job(run: Run, request: JobSpec) -> JobSpec:
    """The job with what every job has beside what was asked for: the property by which Azure ML lists the jobs of all
    runs that were made in the same hour, and mounts that look again. By default what a node has seen of a file it
    believes for ever, and so never sees the rest of a checkpoint that another node was writing
    (https://learn.microsoft.com/azure/machine-learning/how-to-read-write-data-v2).
    """
    variables = {"DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "1", **request.variables}
    properties = {**request.properties, HOUR_PROPERTY: hour_of(run.created_at)}
    return replace(request, variables=variables, properties=properties)


PLAIN = Plain()
