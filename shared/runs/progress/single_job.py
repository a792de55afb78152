"""A run with one job at a time; the first job has the run's name.

If a job loses its nodes, Azure ML lets the job fail, or queues the job again. After a failure, another job continues
from the checkpoints of the previous job, until the run's resubmissions are used up.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.jobs.assets import assets, resolve
from shared.jobs.model import FailureCode, JobFailure, JobState, JobStatus
from shared.jobs.spec import JobSpec
from shared.runs.decide import is_over
from shared.runs.model import Moment, Moves, Placed, Run, RunState
from shared.runs.names import plain_job
from shared.runs.node_use import ClusterUse, by_place, use_of_one_job
from shared.runs.ports import RunPorts
from shared.runs.progress.one_job import OneJob, present_job
from shared.runs.progress.put_job import put_job
from shared.runs.progress.workload import NextStep, Statuses, Submitted

LEAST_SECONDS = 60  # a job with less time left is not submitted


class SingleJob(OneJob):
    kind = ""
    can_move = True

    def accepts(self, _job: JobSpec) -> bool:
        return True

    def jobs(self, run: Run) -> dict[int, str]:
        return {number - 1: plain_job(run.name, number) for number in range(1, run.jobs.number + 1)}

    def job_spec(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        spec = super().job_spec(run, job, rendezvous, now)
        if run.is_steered:
            spec = replace(spec, cluster=run.on_cluster)
        if run.jobs.number > 1 and (left := _seconds_left(run, now)) is not None:
            return replace(spec, timeout_seconds=max(LEAST_SECONDS, left))
        return spec

    def uses(self, run: Run, now: datetime) -> list[ClusterUse]:
        return by_place(use_of_one_job(run, now), run.moves.places)

    def submit(self, ports: RunPorts, run: Run) -> Submitted:
        job = self.job_spec(run, present_job(run), ports.rendezvous, ports.clock())
        ids = assets(ports.jobs, ports.trainers, job)
        answer = put_job(ports, run.name, resolve(job, ids))
        if run.jobs.resubmit:
            self._cancel_if_ended(ports, run.name)
        return Submitted(ids, (present_job(run),), answer.state is JobState.QUEUED)

    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        status = statuses.get(present_job(run))
        if run.jobs.resubmit:
            return self._decide_on_further_job(run, status, now)
        if status and status.state is JobState.CANCELED and run.moves.to and run.cancel.asked_at is None:
            return _moved(run, now)
        if status and status.failure.code is FailureCode.LOST_NODES:
            return _after_a_loss(run, status.failure.summary, now)
        return super().decide(run, statuses, now)

    def _decide_on_further_job(self, run: Run, status: JobStatus | None, now: datetime) -> NextStep:
        if status is not None:  # the job was submitted, and the submitter crashed before recording it
            known = replace(run, jobs=replace(run.jobs, resubmit=False, job=present_job(run)))
            return self.decide(known, {status.name: status}, now) or NextStep(known, run.progress.state)
        if run.cancel.asked_at is not None:
            return NextStep(run, RunState.CANCELED, run.cancel.why or "Canceled before its next job was submitted.")
        return NextStep(run, run.progress.state)

    def job_folder(self, run: Run, job: str) -> str:
        """The archive folder of a job. The last job's files are in the place of an only job's files."""
        return "" if job == present_job(run) else f"attempt-{job.removeprefix(run.name).removeprefix('-a') or 1}/"

    def _cancel_if_ended(self, ports: RunPorts, name: str) -> None:
        """Cancel the job if the run ended during the submission."""
        run = ports.runs.get(name).value
        if run.cancel.asked_at is not None or is_over(run):
            self.cancel(ports, run)


def _after_a_loss(run: Run, words: str, now: datetime) -> NextStep:
    """Resubmit the job if the limits allow it; otherwise fail the run. `words` are Azure ML's."""
    if run.cancel.asked_at is not None:
        return NextStep(run, RunState.CANCELED, run.cancel.why or "Canceled as asked.")
    used, left = run.jobs.number - 1, _seconds_left(run, now)
    spent = used >= run.asked.resubmissions and not run.is_steered
    if spent or (left is not None and left < LEAST_SECONDS):
        end = _count(used) if spent else "its time limit is used up."
        why = f"Its nodes were preempted, and {end}"
        return NextStep(
            run, RunState.FAILED, why, failed_job=present_job(run), failure=JobFailure(FailureCode.LOST_NODES)
        )
    why = f"Its nodes were preempted; job {run.jobs.number + 1} continues from its checkpoints. Azure ML: {words}"
    after = _moved(run, now).run if run.moves.to else _with_further_job(run)
    return NextStep(after, RunState.QUEUED, why, failure=JobFailure(FailureCode.LOST_NODES))


def _with_further_job(run: Run) -> Run:
    return replace(run, jobs=replace(run.jobs, number=run.jobs.number + 1, resubmit=True))


def _moved(run: Run, now: datetime) -> NextStep:
    """The next job of a run whose job was ended to continue on another cluster."""
    cluster = run.moves.to
    why = f"Job {run.jobs.number + 1} continues from its checkpoints on {cluster}. {run.moves.why}"
    after = replace(_with_further_job(run), moves=Moves((*run.moves.places, Placed(now, cluster))))
    if run.progress.state is RunState.QUEUED:  # the state stays the same, but the history shows the move
        history = (*run.progress.history, Moment(RunState.QUEUED, now, why))
        after = replace(after, progress=replace(after.progress, history=history))
    return NextStep(after, RunState.QUEUED, why)


def _seconds_left(run: Run, now: datetime) -> int | None:
    """Seconds left of the run's time limit, which all of the run's jobs share; None without a limit."""
    limit = run.asked.request.timeout_seconds
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), now)
    return limit - int((now - began).total_seconds()) if limit else None


def _count(used: int) -> str:
    return f"all {used} resubmissions are used." if used else "its route allows no resubmissions."
