"""The members of elastic runs: submit their jobs, and do what elastic.py decides."""

from __future__ import annotations

import logging
from typing import Any

from shared.jobs import jobspec
from shared.jobs.assets import assets
from shared.jobs.model import JobStatus
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.stored import Stored
from shared.runs.decide import is_over
from shared.runs.elastic import Plan, judge_members, member_request
from shared.runs.model import FINAL, Member, Run, RunState, member_job
from shared.system import System

log = logging.getLogger(__name__)


def jobs_of(run: Run) -> dict[int, str]:
    """The names of all jobs that the run has had, each under a number that stays when further jobs come.

    The first jobs have their members' numbers, those that replaced them these plus the number of members, and so on.
    """
    if run.elastic is None:
        return {0: run.name}
    pairs = ((m.index, attempt) for m in run.elastic.members for attempt in range(1, m.attempt + 1))
    return {(attempt - 1) * run.nodes + index: member_job(run.name, index, attempt) for index, attempt in pairs}


def look(system: System, run: Run) -> Plan:
    """What Azure ML says of the members that haven't ended, and what to do about it."""
    assert run.elastic is not None
    statuses: dict[int, JobStatus] = {}
    for member in run.elastic.members:
        if member.state not in FINAL and (status := system.jobs.status(_job(run, member))):
            statuses[member.index] = status
    return judge_members(run, statuses, system.clock())


def act(system: System, stored: Stored[Run], plan: Plan) -> None:
    """Carry the plan out, after it was written down. Twice is once."""
    run = stored.value
    for member in plan.to_cancel:
        system.jobs.cancel(_job(run, member))
    if not is_over(run) and run.state is not RunState.RECEIVED:
        submit_members(system, run)


def submit_members(system: System, run: Run) -> dict[str, Any]:
    """Put the jobs of all members that have none yet. Returns the ids of code and environment.

    Raises BadInput if Azure ML takes none of them, ever. One that was told to end meanwhile is canceled.
    """
    assert run.elastic is not None
    ids = assets(system, run.request)
    for member in run.elastic.members:
        if member.state is RunState.RECEIVED:
            job = member_request(run, member, system.rendezvous, system.clock())
            system.jobs.submit(jobspec.resolve(job, **ids))
            log.info("run %s: submitted member %s as job %s. %s", run.name, member.index, job["name"], member.why)
            _cancel_if_ended(system, run.name, member)
    return ids


def _cancel_if_ended(system: System, name: str, member: Member) -> None:
    """Someone else may have ended the run while this job was on its way, and could not cancel it."""
    run = system.runs.get(name).value
    assert run.elastic is not None
    if run.elastic.members[member.index].state in FINAL or is_over(run):
        system.jobs.cancel(_job(run, member))


def cancel_members(system: System, run: Run) -> None:
    """Ask for the end of every member's job that hasn't ended."""
    assert run.elastic is not None
    for member in run.elastic.members:
        if member.state not in FINAL:
            system.jobs.cancel(_job(run, member))


def evict(system: System, name: str, index: int) -> str:
    """End the job of one member, as losing its node does, and return its name. The run goes on without it.

    Raises Impossible for a run that isn't elastic, NotFound for an unknown member, Conflict for one that isn't running.
    """
    run = system.runs.get(name).value
    if run.elastic is None:
        raise Impossible(f"Run {name} is one job; only members of an elastic run can be evicted.", "not_elastic")
    if not 0 <= index < len(run.elastic.members):
        raise NotFound(f"Run {name} has no member {index}; it has 0 to {len(run.elastic.members) - 1}.")
    member = run.elastic.members[index]
    if member.state is not RunState.RUNNING:
        raise Conflict(f"Member {index} of run {name} is {member.state}, not running.", "not_running")
    system.jobs.cancel(_job(run, member))
    return _job(run, member)


def _job(run: Run, member: Member) -> str:
    return member_job(run.name, member.index, member.attempt)
