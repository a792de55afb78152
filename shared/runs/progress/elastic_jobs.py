"""A run of many single-node jobs, its members. The policy for the members is in elastic_policy.py."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from msgspec.structs import replace as with_

from shared.jobs.assets import Assets, assets, resolve
from shared.jobs.model import JobStatus
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.runs.decide import is_over
from shared.runs.model import DEDICATED_FROM, ELASTIC, FINAL, Elastic, Member, Run, RunState
from shared.runs.names import member_job
from shared.runs.node_use import ClusterUse
from shared.runs.ports import RunPorts
from shared.runs.progress.capabilities import HasMembers, MembersView
from shared.runs.progress.elastic_policy import (
    begin,
    judge_members,
    member_request,
    uses_of_members,
)
from shared.runs.progress.one_job import for_every_job
from shared.runs.progress.workload import NewRun, NextStep, Statuses, Submitted, Workload

log = logging.getLogger(__name__)


class ElasticJobs(Workload, HasMembers):
    kind = ELASTIC
    pays_while_waiting = True
    replaces_jobs = True
    logs_to_mlflow = False  # each job has its own MLflow run, and none has the whole curve

    def takes(self, job: JobSpec) -> bool:
        return job.is_elastic

    def begun(self, run: Run, new: NewRun) -> Run:
        return _with(super().begun(run, new), begin(new.job, new.bounds, new.at))

    def jobs(self, run: Run) -> dict[int, str]:
        """Job numbers: first jobs have their members' numbers; each replacement adds the number of members."""
        pairs = ((m.index, attempt) for m in _elastic(run).members for attempt in range(1, m.attempt + 1))
        return {_number(run, index, attempt): member_job(run.name, index, attempt) for index, attempt in pairs}

    def live_jobs(self, run: Run) -> list[str]:
        return [_job(run, m) for m in _elastic(run).members if m.state not in FINAL]

    def running_jobs(self, run: Run) -> set[str]:
        return {_job(run, m) for m in _elastic(run).members if m.state is RunState.RUNNING}

    def job_spec(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        member = next(m for m in _elastic(run).members if _job(run, m) == job)
        return for_every_job(run, member_request(run, member, rendezvous, now))

    def fewest_nodes(self, run: Run) -> int:
        return _elastic(run).min_nodes

    def losses(self, run: Run) -> int:
        return _elastic(run).resubmitted

    def uses(self, run: Run, now: datetime) -> list[ClusterUse]:
        return uses_of_members(run, now)

    def bounds(self, run: Run) -> tuple[int, int]:
        return _elastic(run).min_nodes, run.asked.resubmissions

    def overdue(self, _run: Run, _now: datetime) -> str | None:
        """None: `judge_members` ends the run at its deadline."""

    def members(self, run: Run) -> MembersView:
        elastic = _elastic(run)
        members = tuple((member, _job(run, member)) for member in elastic.members)
        return MembersView(
            elastic.min_nodes,
            elastic.resubmissions,
            elastic.resubmitted,
            elastic.deadline,
            members,
            elastic.sizes,
            tuple((loss, member_job(run.name, loss.index, loss.attempt)) for loss in elastic.losses),
        )

    def can_ignore(self, _run: Run, _told: RunState, _scarce: bool) -> bool:
        """False: one member's state says nothing about the other members."""
        return False

    def may_change(self, _run: Run, _statuses: Statuses) -> bool:
        return True

    def has_unsent_jobs(self, run: Run) -> bool:
        return run.progress.state is not RunState.RECEIVED and bool(_unsent(run))

    def submit(self, ports: RunPorts, run: Run) -> Submitted:
        waiting, of_cluster = _unsent(run), dict[str, Assets]()
        for member in waiting:
            job = self.job_spec(run, _job(run, member), ports.rendezvous, ports.clock())
            ids = of_cluster.get(job.cluster) or assets(ports.jobs, ports.trainers, job)
            of_cluster[job.cluster] = ids
            ports.jobs.submit(resolve(job, ids))
            log.info("run %s: submitted member %s as job %s. %s", run.name, member.index, job.name, member.why)
        if waiting:
            self._cancel_if_ended(ports, run.name, waiting)
        ids = next(iter(of_cluster.values()), None) or assets(ports.jobs, ports.trainers, run.asked.request)
        return Submitted(ids, tuple(_job(run, member) for member in waiting))

    def after_submission(self, run: Run, jobs: tuple[str, ...]) -> Run:
        elastic = _elastic(run)
        members = tuple(
            with_(m, state=RunState.SUBMITTED) if m.state is RunState.RECEIVED and _job(run, m) in jobs else m
            for m in elastic.members
        )
        return _with(run, replace(elastic, members=members))

    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        by_index: dict[int, JobStatus] = {}
        for member in _elastic(run).members:
            if member.state not in FINAL and (status := statuses.get(_job(run, member))):
                by_index[member.index] = status
        if run.progress.state is RunState.RECEIVED and not by_index:
            return None  # submission comes first
        plan = judge_members(run, by_index, now)
        to_cancel = tuple(_job(run, member) for member in plan.to_cancel)
        failed_job = plan.failed_job if plan.state is RunState.FAILED else ""
        return NextStep(_with(run, plan.elastic), plan.state, plan.why, to_cancel, failed_job, plan.failure)

    def evict(self, ports: RunPorts, run: Run, index: int) -> str:
        members = {member.index: member for member in _elastic(run).members}
        if index not in members:
            raise NotFound(f"Run {run.name} has no member {index}; it has 0 to {run.asked.nodes - 1}.")
        member = members[index]
        if member.state is not RunState.RUNNING:
            raise Conflict(f"Member {index} of run {run.name} is {member.state}, not running.", "not_running")
        ports.jobs.cancel(_job(run, member))
        return _job(run, member)

    def job_folder(self, run: Run, job: str) -> str:
        return f"{job.removeprefix(run.name).lstrip('-')}/"

    def ranks(self, run: Run) -> list[int] | None:
        return sorted(self.jobs(run))

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        job = self.jobs(run).get(rank)
        return (job, 0) if job else None

    def _cancel_if_ended(self, ports: RunPorts, name: str, sent: list[Member]) -> None:
        """Cancel these jobs if the run ended during the submission."""
        run = ports.runs.get(name).value
        for member in sent:
            if is_over(run) or _job(run, member) not in self.live_jobs(run):
                ports.jobs.cancel(_job(run, member))


def _elastic(run: Run) -> Elastic:
    if run.jobs.elastic is None:
        raise Impossible(f"Run {run.name} has no members.", "not_elastic")
    return run.jobs.elastic


def _with(run: Run, elastic: Elastic) -> Run:
    return replace(run, jobs=replace(run.jobs, elastic=elastic))


def _job(run: Run, member: Member) -> str:
    return member_job(run.name, member.index, member.attempt)


def _unsent(run: Run) -> list[Member]:
    """The members whose current jobs are not submitted yet."""
    return [member for member in _elastic(run).members if member.state is RunState.RECEIVED]


def _number(run: Run, index: int, attempt: int) -> int:
    """The number of a member's job among all jobs of the run. The number stays the same when more jobs follow."""
    if index >= DEDICATED_FROM:
        return index * DEDICATED_FROM + attempt
    return (attempt - 1) * run.asked.nodes + index
