"""A run of many single-node jobs, its members. The policy for the members is in decide.py."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from msgspec.structs import replace as with_

from shared.elastic.decide import begin, judge_members, member_request, uses_of_members
from shared.elastic.model import DEDICATED_FROM, KIND, Member, elastic_of, member_job
from shared.jobs.assets import Assets, assets, resolve
from shared.jobs.model import JobStatus
from shared.jobs.spec import JobSpec
from shared.runs.decide import is_over
from shared.runs.model import FINAL, Run, RunState
from shared.runs.node_use import ClusterUse
from shared.runs.ports import RunPorts
from shared.runs.progress.one_job import for_every_job
from shared.runs.progress.put_job import put_job
from shared.runs.progress.workload import NewRun, NextStep, Statuses, Submitted, Workload

log = logging.getLogger(__name__)


class ElasticJobs(Workload):
    kind = KIND
    pays_while_waiting = True
    replaces_jobs = True
    logs_to_mlflow = False  # each job has its own MLflow run, and none has the whole curve

    def accepts(self, job: JobSpec) -> bool:
        return job.is_elastic

    def begun(self, run: Run, new: NewRun) -> Run:
        return super().begun(run, new).having(begin(new.job, new.bounds, new.at))

    def jobs(self, run: Run) -> dict[int, str]:
        """Job numbers: first jobs have their members' numbers; each replacement adds the number of members."""
        pairs = ((m.index, attempt) for m in elastic_of(run).members for attempt in range(1, m.attempt + 1))
        return {_number(run, index, attempt): member_job(run.name, index, attempt) for index, attempt in pairs}

    def live_jobs(self, run: Run) -> list[str]:
        return [job_of(run, m) for m in elastic_of(run).members if m.state not in FINAL]

    def running_jobs(self, run: Run) -> set[str]:
        return {job_of(run, m) for m in elastic_of(run).members if m.state is RunState.RUNNING}

    def running_since(self, run: Run, job: str) -> datetime | None:
        running = (m for m in elastic_of(run).members if m.state is RunState.RUNNING)
        return next((m.at for m in running if job_of(run, m) == job), None)

    def nodes_changed_at(self, run: Run) -> datetime:
        return max(run.progress.history[-1].at, *(member.at for member in elastic_of(run).members))

    def job_spec(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        member = next(m for m in elastic_of(run).members if job_of(run, m) == job)
        return for_every_job(run, member_request(run, member, rendezvous, now))

    def fewest_nodes(self, run: Run) -> int:
        return elastic_of(run).min_nodes

    def losses(self, run: Run) -> int:
        return elastic_of(run).resubmitted

    def uses(self, run: Run, now: datetime) -> list[ClusterUse]:
        return uses_of_members(run, now)

    def bounds(self, run: Run) -> tuple[int, int]:
        return elastic_of(run).min_nodes, run.asked.resubmissions

    def overdue(self, _run: Run, _now: datetime) -> str | None:
        """None: `judge_members` ends the run at its deadline."""

    def can_ignore(self, _run: Run, _told: RunState, _scarce: bool) -> bool:
        """False: one member's state tells nothing about the other members."""
        return False

    def may_change(self, _run: Run, _statuses: Statuses) -> bool:
        return True

    def has_unsent_jobs(self, run: Run) -> bool:
        return run.progress.state is not RunState.RECEIVED and bool(_unsent(run))

    def submit(self, ports: RunPorts, run: Run) -> Submitted:
        waiting, of_cluster = list[Member](), dict[str, Assets]()
        for member in _unsent(run):
            if not self._is_wanted(ports, run, member):
                continue
            waiting.append(member)
            job = self.job_spec(run, job_of(run, member), ports.rendezvous, ports.clock())
            ids = of_cluster.get(job.cluster) or assets(ports.jobs, ports.trainers, job)
            of_cluster[job.cluster] = ids
            put_job(ports, run.name, resolve(job, ids))
            log.info("run %s: submitted member %s as job %s. %s", run.name, member.index, job.name, member.why)
        if waiting:
            self._cancel_if_ended(ports, run.name, waiting)
        ids = next(iter(of_cluster.values()), None) or assets(ports.jobs, ports.trainers, run.asked.request)
        return Submitted(ids, tuple(job_of(run, member) for member in waiting))

    def after_submission(self, run: Run, jobs: tuple[str, ...]) -> Run:
        elastic = elastic_of(run)
        members = tuple(
            with_(m, state=RunState.SUBMITTED) if m.state is RunState.RECEIVED and job_of(run, m) in jobs else m
            for m in elastic.members
        )
        return run.having(replace(elastic, members=members))

    def decide(self, run: Run, statuses: Statuses, now: datetime) -> NextStep | None:
        by_index: dict[int, JobStatus] = {}
        for member in elastic_of(run).members:
            if member.state not in FINAL and (status := statuses.get(job_of(run, member))):
                by_index[member.index] = status
        if run.progress.state is RunState.RECEIVED and not by_index:
            return None  # submission comes first
        plan = judge_members(run, by_index, now)
        to_cancel = tuple(job_of(run, member) for member in plan.to_cancel)
        failed_job = plan.failed_job if plan.state is RunState.FAILED else ""
        return NextStep(run.having(plan.elastic), plan.state, plan.why, to_cancel, failed_job, plan.failure)

    def job_folder(self, run: Run, job: str) -> str:
        return f"{job.removeprefix(run.name).lstrip('-')}/"

    def ranks(self, run: Run) -> list[int] | None:
        return sorted(self.jobs(run))

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        job = self.jobs(run).get(rank)
        return (job, 0) if job else None

    def _is_wanted(self, ports: RunPorts, run: Run, member: Member) -> bool:
        """Return whether the run still has this member, by its newest row: each submission takes seconds."""
        newest = ports.runs.get(run.name).value
        return not is_over(newest) and job_of(run, member) in self.live_jobs(newest)

    def _cancel_if_ended(self, ports: RunPorts, name: str, sent: list[Member]) -> None:
        """Cancel these jobs if the run ended during the submission."""
        run = ports.runs.get(name).value
        for member in sent:
            if is_over(run) or job_of(run, member) not in self.live_jobs(run):
                ports.jobs.cancel(job_of(run, member))


def job_of(run: Run, member: Member) -> str:
    """The name of the member's current job."""
    return member_job(run.name, member.index, member.attempt)


def _unsent(run: Run) -> list[Member]:
    """The members whose current jobs are not submitted yet."""
    return [member for member in elastic_of(run).members if member.state is RunState.RECEIVED]


def _number(run: Run, index: int, attempt: int) -> int:
    """The number of a member's job among all jobs of the run. More jobs never change the number."""
    if index >= DEDICATED_FROM:
        return index * DEDICATED_FROM + attempt
    return (attempt - 1) * run.asked.nodes + index
