"""A run that is one job at a time, the first under the run's own name.

Azure ML queues a job that lost its nodes again, or lets the job fail. In the second case a further job continues from
the checkpoints, which are where the first one left them, until the run's resubmissions are used up.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from itertools import pairwise, takewhile
from typing import Any

from shared.deadlines.plan import Hold
from shared.jobs.assets import assets, resolve
from shared.jobs.model import JobState, JobStatus
from shared.jobs.spec import JobSpec
from shared.runs.date import Placed
from shared.runs.decide import first_line, is_over
from shared.runs.model import Moment, Run, RunState
from shared.runs.names import plain_job
from shared.runs.node_use import WAITING, Use, by_place, use_of_one_job
from shared.runs.progress.capabilities import HeldNodes, NodeChanges, Steerable
from shared.runs.progress.changes_of_nodes import next_cluster, waits_for_nodes
from shared.runs.progress.one_job import OneJob, present_job
from shared.runs.progress.workload import NextStep, Ports, Statuses, Submitted

PREEMPTED = re.compile(r"\W*(PreemptionError\b|Nodes of this job got pre-?empted)", re.IGNORECASE)
LEAST_SECONDS = 60  # a job that may run for less is not submitted


class SingleJob(OneJob, Steerable):
    kind = ""
    overlaps = False
    can_move = True

    def takes(self, _job: JobSpec) -> bool:
        return True

    def jobs(self, run: Run) -> dict[int, str]:
        return {number - 1: plain_job(run.name, number) for number in range(1, run.jobs.number + 1)}

    def job_spec(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        spec = super().job_spec(run, job, rendezvous, now)
        if run.due.done_by:
            spec = replace(spec, cluster=run.on_cluster)
        if run.jobs.number > 1 and (left := _seconds_left(run, now)) is not None:
            return replace(spec, timeout_seconds=max(LEAST_SECONDS, left))
        return spec

    def uses(self, run: Run, now: datetime) -> list[Use]:
        return by_place(use_of_one_job(run, now), run.pace.places)

    def held_nodes(self, run: Run, _now: datetime) -> HeldNodes:
        on_low, runs = run.on_cluster in run.due.low_clusters, run.progress.state is RunState.RUNNING
        since = _waits_since(run) if on_low and not runs else run.progress.history[-1].at
        return HeldNodes(on_low, on_low and runs, since, not on_low, runs)

    def steer(self, run: Run, hold: Hold, roomy: str, now: datetime) -> tuple[dict[str, Any], tuple[str, ...]]:
        target = run.due.dedicated_cluster if hold is Hold.DEDICATED else _low_cluster(run, roomy, now)
        if run.jobs.resubmit or (target == run.on_cluster and not run.pace.moves_to):
            return {}, ()
        return {"moves_to": run.pace.moves_to or target}, (present_job(run),)

    def node_changes(self, run: Run) -> NodeChanges:
        starts = [
            (before.at, after.at)
            for before, after in pairwise(run.progress.history)
            if after.state is RunState.RUNNING and before.state in WAITING
        ]
        waits = [(_cluster_at(run, asked), (began - asked).total_seconds()) for asked, began in starts]
        return NodeChanges(waits_for_nodes(run, waits), tuple(began for _, began in starts))

    def submit(self, ports: Ports, run: Run) -> Submitted:
        job = self.job_spec(run, present_job(run), ports.rendezvous, ports.clock())
        ids = assets(ports.jobs, ports.trainers, job)
        answer = ports.jobs.submit(resolve(job, ids))
        if run.jobs.resubmit:
            self._cancel_if_ended(ports, run.name)
        return Submitted(ids, (present_job(run),), answer.state is JobState.QUEUED)

    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        status = statuses.get(present_job(run))
        if run.jobs.resubmit:
            return self._decide_on_further_job(run, status, now)
        if status and status.state is JobState.CANCELED and run.pace.moves_to and run.cancel.asked_at is None:
            return _moved(run, now)
        if status and status.state is JobState.FAILED and lost_its_nodes(status):
            return _after_a_loss(run, first_line(status.error), now)
        return super().decide(run, statuses, now)

    def _decide_on_further_job(self, run: Run, status: JobStatus | None, now: datetime) -> NextStep:
        if status is not None:  # the job was submitted, and its submitter died before recording that
            changes: dict[str, Any] = {"resubmit": False, "job": present_job(run)}
            step = self.decide(run.changed(resubmit=False), {status.name: status}, now)
            step = step or NextStep(run.progress.state)
            return replace(step, changes=changes | step.changes)
        if run.cancel.asked_at is not None:
            return NextStep(RunState.CANCELED, run.cancel.why or "Canceled before its next job was sent.")
        return NextStep(run.progress.state)

    def job_folder(self, run: Run, job: str) -> str:
        """The folder of a job that others followed; the last job's files are where those of an only job are."""
        return "" if job == present_job(run) else f"attempt-{job.removeprefix(run.name).removeprefix('-a') or 1}/"

    def _cancel_if_ended(self, ports: Ports, name: str) -> None:
        """Cancel the job if the run was ended while the job was on its way."""
        run = ports.runs.get(name).value
        if run.cancel.asked_at is not None or is_over(run):
            self.cancel(ports, run)


def lost_its_nodes(status: JobStatus) -> bool:
    """Whether a job failed because its nodes were taken, in Azure ML's own words, and not in those of a script.

    https://github.com/Azure/MachineLearningNotebooks/issues/1242 has them.
    """
    return bool(PREEMPTED.match(status.error))


def _after_a_loss(run: Run, words: str, now: datetime) -> NextStep:
    """A further job, if one may follow. `words` are Azure ML's."""
    if run.cancel.asked_at is not None:
        return NextStep(RunState.CANCELED, run.cancel.why or "Canceled as asked.")
    used, left = run.jobs.number - 1, _seconds_left(run, now)
    spent = used >= run.asked.resubmissions and run.due.done_by is None
    if spent or (left is not None and left < LEAST_SECONDS):
        end = _count(used) if spent else "its time limit is used up."
        why = f"Its nodes were taken, and {end}"
        return NextStep(RunState.FAILED, why, failed_job=present_job(run), error=why)
    why = f"Its nodes were taken; job {run.jobs.number + 1} goes on from its checkpoints. Azure ML: {words}"
    moved = _moved(run, now).changes if run.pace.moves_to else {}
    return NextStep(RunState.QUEUED, why, {"job_number": run.jobs.number + 1, "resubmit": True} | moved)


def _moved(run: Run, now: datetime) -> NextStep:
    """The further job of a run that ended its job to go on elsewhere."""
    cluster = run.pace.moves_to
    why = f"Job {run.jobs.number + 1} goes on from its checkpoints on {cluster}. {run.pace.holds_why}"
    changes: dict[str, Any] = {"job_number": run.jobs.number + 1, "resubmit": True, "moves_to": ""}
    if run.progress.state is RunState.QUEUED:  # no step, but to be known
        changes["history"] = (*run.progress.history, Moment(RunState.QUEUED, now, why))
    return NextStep(RunState.QUEUED, why, {**changes, "places": (*run.pace.places, Placed(now, cluster))})


def _low_cluster(run: Run, roomy: str, now: datetime) -> str:
    """Where a run that is to hold low-priority nodes, or to wait for them, has its job."""
    if run.on_cluster not in run.due.low_clusters:
        return roomy
    if run.progress.state is RunState.RUNNING:
        return run.on_cluster
    return next_cluster(run, run.on_cluster, run.progress.history[-1].at, now)


def _waits_since(run: Run) -> datetime:
    """Since when it has had no nodes, or has been back from dedicated ones."""
    waiting = [moment.at for moment in takewhile(lambda m: m.state is not RunState.RUNNING, run.progress.history[::-1])]
    on_low = [each.at for each in takewhile(lambda p: p.cluster in run.due.low_clusters, run.pace.places[::-1])]
    return max(waiting[-1], *on_low[-1:])


def _cluster_at(run: Run, at: datetime) -> str:
    """On which cluster its job was; a job has its place a moment before its history says so."""
    return next((each.cluster for each in run.pace.places[::-1] if each.at <= at), run.asked.cluster)


def _seconds_left(run: Run, now: datetime) -> int | None:
    """Seconds left of the run's time limit, which all its jobs share; None without one."""
    limit = run.asked.request.timeout_seconds
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), now)
    return limit - int((now - began).total_seconds()) if limit else None


def _count(used: int) -> str:
    return f"all {used} resubmissions are used." if used else "no job may follow: its route allows no resubmissions."
