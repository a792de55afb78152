"""A run that is many jobs on one node each, its members. What they decide together is in elastic_policy.py."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from msgspec.structs import replace as with_

from shared.jobs.assets import assets
from shared.jobs.model import JobStatus
from shared.jobs.ports import HasJobs, HasTrainers
from shared.jobs.spec import JobSpec, resolve
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.has import HasClock
from shared.runs.decide import is_over
from shared.runs.model import DEDICATED_FROM, FINAL, Elastic, Member, Run, RunState
from shared.runs.names import member_job
from shared.runs.node_use import Use
from shared.runs.ports import HasRendezvous, HasRuns
from shared.runs.progress.elastic_policy import (
    judge_members,
    member_request,
    uses_of_members,
)
from shared.runs.progress.single_job import for_every_job
from shared.runs.progress.workload import Look, MembersView, Seen, Submitted

log = logging.getLogger(__name__)


class Ports(HasClock, HasJobs, HasTrainers, HasRuns, HasRendezvous, Protocol):
    """What is needed here from outside."""


class Members:
    def jobs(self, run: Run) -> dict[int, str]:
        """The first jobs have their members' numbers, those that replaced them these plus the number of members."""
        pairs = ((m.index, attempt) for m in _elastic(run).members for attempt in range(1, m.attempt + 1))
        return {_number(run, index, attempt): member_job(run.name, index, attempt) for index, attempt in pairs}

    def live_jobs(self, run: Run) -> list[str]:
        return [_job(run, m) for m in _elastic(run).members if m.state not in FINAL]

    def on_nodes(self, run: Run) -> set[str]:
        return {_job(run, m) for m in _elastic(run).members if m.state is RunState.RUNNING}

    def request(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:
        member = next(m for m in _elastic(run).members if _job(run, m) == job)
        return for_every_job(run, member_request(run, member, rendezvous, now))

    def fewest_nodes(self, run: Run) -> int:
        return _elastic(run).min_nodes

    def losses(self, run: Run) -> int:
        return _elastic(run).resubmitted

    def uses(self, run: Run, now: datetime) -> list[Use]:
        return uses_of_members(run, now)

    def bounds(self, run: Run) -> tuple[int, int]:
        return _elastic(run).min_nodes, run.asked.resubmissions

    def overdue(self, run: Run, now: datetime) -> str | None:
        """None: `judge_members` ends it at its deadline."""
        return None

    def can_move(self, run: Run) -> bool:
        return False

    def members(self, run: Run) -> MembersView | None:
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

    def logs_to_mlflow(self, run: Run) -> bool:
        """False: each job has its own MLflow run, and none has the whole curve."""
        return False

    def jobs_change(self, run: Run) -> bool:
        return True

    def can_wait(self, run: Run, told: RunState, scarce: bool) -> bool:
        """False: a member's state says nothing of the others."""
        return False

    def worth_a_look(self, run: Run, seen: Seen) -> bool:
        return True

    def submit(self, ports: Ports, run: Run) -> Submitted:
        """One that was told to end while its job was on its way is canceled."""
        ids = assets(ports.jobs, ports.trainers, run.asked.request)
        waiting = [m for m in _elastic(run).members if m.state is RunState.RECEIVED]
        for member in waiting:
            job = self.request(run, _job(run, member), ports.rendezvous, ports.clock())
            ports.jobs.submit(resolve(job, ids.code, ids.environment, ids.code_digest))
            log.info("run %s: submitted member %s as job %s. %s", run.name, member.index, job.name, member.why)
        if waiting:
            self._cancel_if_ended(ports, run.name, waiting)
        return Submitted(ids, tuple(_job(run, member) for member in waiting))

    def sent(self, run: Run, jobs: tuple[str, ...]) -> dict[str, Any]:
        elastic = _elastic(run)
        if not any(m.state is RunState.RECEIVED and _job(run, m) in jobs for m in elastic.members):
            return {}
        members = tuple(
            with_(m, state=RunState.SUBMITTED) if m.state is RunState.RECEIVED and _job(run, m) in jobs else m
            for m in elastic.members
        )
        return {"elastic": replace(elastic, members=members)}

    def look(self, run: Run, seen: Seen, now: datetime) -> Look | None:
        statuses: dict[int, JobStatus] = {}
        for member in _elastic(run).members:
            if member.state not in FINAL and (status := seen.get(_job(run, member))):
                statuses[member.index] = status
        if run.progress.state is RunState.RECEIVED and not statuses:
            return None  # it is submitted first
        plan = judge_members(run, statuses, now)
        changes = {"elastic": plan.elastic} if plan.elastic != run.jobs.elastic else {}
        to_cancel = tuple(_job(run, member) for member in plan.to_cancel)
        failed_job = plan.failed_job if plan.state is RunState.FAILED else ""
        return Look(plan.state, plan.why, changes, to_cancel, failed_job, plan.why)

    def act(self, ports: Ports, run: Run, look: Look) -> tuple[str, ...]:
        for job in look.to_cancel:
            ports.jobs.cancel(job)
        waiting = any(member.state is RunState.RECEIVED for member in _elastic(run).members)
        if is_over(run) or run.progress.state is RunState.RECEIVED or not waiting:
            return ()
        return self.submit(ports, run).jobs

    def cancel(self, ports: Ports, run: Run) -> None:
        for job in self.live_jobs(run):
            ports.jobs.cancel(job)

    def evict(self, ports: Ports, run: Run, index: int) -> str:
        members = {member.index: member for member in _elastic(run).members}
        if index not in members:
            raise NotFound(f"Run {run.name} has no member {index}; it has 0 to {run.asked.nodes - 1}.")
        member = members[index]
        if member.state is not RunState.RUNNING:
            raise Conflict(f"Member {index} of run {run.name} is {member.state}, not running.", "not_running")
        ports.jobs.cancel(_job(run, member))
        return _job(run, member)

    def log_folder(self, run: Run, job: str) -> str:
        return f"logs/{_place(run, job)}/"

    def output_folder(self, run: Run, job: str) -> str:
        return f"outputs/{_place(run, job)}/"

    def ranks(self, run: Run) -> list[int] | None:
        return sorted(self.jobs(run))

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        job = self.jobs(run).get(rank)
        return (job, 0) if job else None

    def _cancel_if_ended(self, ports: Ports, name: str, sent: list[Member]) -> None:
        """Cancel these jobs if the run ended while they were on their way."""
        run = ports.runs.get(name).value
        for member in sent:
            if is_over(run) or _job(run, member) not in self.live_jobs(run):
                ports.jobs.cancel(_job(run, member))


def _elastic(run: Run) -> Elastic:
    if run.jobs.elastic is None:
        raise Impossible(f"Run {run.name} has no members.", "not_elastic")
    return run.jobs.elastic


def _job(run: Run, member: Member) -> str:
    return member_job(run.name, member.index, member.attempt)


def _number(run: Run, index: int, attempt: int) -> int:
    """The number of a member's job among all that the run has had: the same when further ones come."""
    if index >= DEDICATED_FROM:
        return index * DEDICATED_FROM + attempt
    return (attempt - 1) * run.asked.nodes + index


def _place(run: Run, job: str) -> str:
    return job.removeprefix(run.name).lstrip("-")


MEMBERS = Members()
