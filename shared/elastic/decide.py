"""Policy of elastic runs: train on however many nodes are available. Pure.

An elastic run consists of n single-node jobs, called members, instead of one job on n nodes. The members meet in the
rendezvous (a table) under the run's name. They start training as soon as `min_nodes` members are present. Later members
join the training, and the training continues without members that die. A preempted node therefore costs the training
some seconds, but not the job.

A member whose job ends before the training is done gets a new job, as long as the run has resubmissions left and its
deadline has not passed. A job that Azure evicted uses no resubmission: the deadline bounds the cost. The exit code of a
job says how it ended, and elastic.launch chooses the exit code: 0 only if the training is done. The run ends when all
members have ended, with the result that this module decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from msgspec.structs import replace as with_

from shared.elastic.model import (
    DEDICATED_FROM,
    Elastic,
    Loss,
    Member,
    Size,
    elastic_of,
    member_job,
    seconds_ran,
)
from shared.jobs.limits import DAY
from shared.jobs.model import FailureCode, JobFailure, JobState, JobStatus
from shared.jobs.spec import JobSpec, on_each_node
from shared.runs import old_sentences
from shared.runs.model import FINAL, Run, RunState
from shared.runs.node_use import ClusterUse, NodeSpan, use_of_one_job

MISSING_FOR = timedelta(days=1)  # a job that Azure ML can't find counts as lost after this time
GRACE = timedelta(minutes=2)  # time for members to end by themselves after one member reports that the training is done
SIZES_KEPT = 200
LOSSES_KEPT = 100
# Restarts of a node's workers, which end whenever another node does; afterwards the member gets a new job
MAX_RESTARTS = 20
NODE_LOST, NODE_BACK = "It lost its node and waits for a new one.", "It lost its node, and has a new one."
BAD_INPUT = 2  # the trainers' exit code for data and arguments that would fail on every node


def begin(job: JobSpec, bounds: tuple[int, int], now: datetime) -> Elastic:
    """Elastic part of a new run: the maximum number of members, none submitted yet.

    `bounds` are the minimum number of nodes (0: all of them) and the number of resubmissions.
    """
    most, (fewest, resubmissions) = job.node_count, bounds
    deadline = now + timedelta(seconds=job.timeout_seconds or DAY)
    members = tuple(Member(index, 1, RunState.RECEIVED, now, asked_at=now) for index in range(most))
    return Elastic(min(fewest or most, most), resubmissions, deadline, members)


def member_request(run: Run, member: Member, rendezvous: str, now: datetime) -> JobSpec:
    """The job of one member: the run's job on one node, with the rendezvous in environment variables.

    The variables are torchrun's own (PET_ and the name of an option). The job's time limit ends at the run's deadline.
    """
    elastic, job = elastic_of(run), run.asked.request
    seconds = max(1, int((elastic.deadline - now).total_seconds()))
    meeting = {
        "PET_NNODES": f"{elastic.min_nodes}:{run.asked.nodes}",
        "PET_RDZV_BACKEND": "azure-table",
        "PET_RDZV_ENDPOINT": rendezvous,
        "PET_RDZV_ID": run.name,
        "PET_MAX_RESTARTS": str(MAX_RESTARTS),
    }
    tags = {"trainyard.run": run.name, "trainyard.member": str(member.index)}
    return replace(
        on_each_node(job),
        name=member_job(run.name, member.index, member.attempt),
        title=f"{job.title or run.name} (member {member.index})",
        nodes=1,
        cluster=member.cluster or (run.on_cluster if run.is_steered else job.cluster),
        timeout_seconds=seconds,
        variables={**job.variables, **meeting},
        tags={**job.tags, **tags},
    )


def uses_of_members(run: Run, now: datetime) -> list[ClusterUse]:
    """The run's use of each cluster: as many nodes as members ran on the cluster."""
    elastic = elastic_of(run)
    dedicated = next((m.cluster for m in elastic.members if m.is_dedicated), "")
    elsewhere = elastic.further_sizes | ({dedicated: elastic.dedicated_sizes} if elastic.dedicated_sizes else {})
    moments = sorted({size.at for sizes in (elastic.sizes, *elsewhere.values()) for size in sizes})
    first = [Size(at, _at(elastic.sizes, at) - sum(_at(sizes, at) for sizes in elsewhere.values())) for at in moments]
    there = [replace(_use(run, sizes, now), cluster=name, waited=()) for name, sizes in elsewhere.items()]
    return [replace(_use(run, first, now), cluster=run.on_cluster), *there]


def _at(sizes: Sequence[Size], at: datetime) -> int:
    return next((size.nodes for size in reversed(sizes) if size.at <= at), 0)


def _use(run: Run, of: Sequence[Size], now: datetime) -> ClusterUse:
    """The run's use of one cluster. The members wait for each other during the whole run."""
    as_one = use_of_one_job(run, now)
    spells = sorted((*as_one.waited, *as_one.ran), key=lambda spell: spell.begin)
    waited = (NodeSpan(spells[0].begin, max(spell.end for spell in spells), run.asked.nodes),) if spells else ()
    sizes = [(size.nodes, size.at) for size in of]
    ran = tuple(
        NodeSpan(begin, end, nodes)
        for (nodes, begin), (_, end) in pairwise([*sizes, (0, as_one.ended or now)])
        if nodes and begin < end
    )
    return replace(as_one, waited=waited, ran=ran)


@dataclass(frozen=True)
class MembersPlan:
    """The members' current states, the run's state and its reason, and the members whose jobs to cancel."""

    elastic: Elastic
    state: RunState
    why: str
    to_cancel: tuple[Member, ...] = ()
    failed_job: str = ""  # the job whose log explains why the run failed
    failure: JobFailure | None = None  # of that job


def judge_members(run: Run, statuses: Mapping[int, JobStatus], now: datetime) -> MembersPlan:
    """Decide the next states of an elastic run and its members. `statuses`: by index, of the current jobs.

    A member without a status keeps its state: its job has not been submitted yet, or can't be found.
    """
    plan = _judged(run, statuses, now)
    return replace(plan, elastic=_with_losses(run, plan.elastic, now))


def _judged(run: Run, statuses: Mapping[int, JobStatus], now: datetime) -> MembersPlan:
    before = elastic_of(run)
    members = tuple(_seen(m, statuses.get(m.index) or _lost(m, now), now) for m in before.members)
    dedicated = tuple(member for member in members if member.is_dedicated)
    sizes, dedicated_sizes = _sizes(before.sizes, members, now), _sizes(before.dedicated_sizes, dedicated, now)
    further = _further_sizes(run, members, now)
    elastic = replace(before, members=members, sizes=sizes, dedicated_sizes=dedicated_sizes, further_sizes=further)
    if done := [m for m in members if m.state is RunState.COMPLETED]:
        return _ending(elastic, RunState.COMPLETED, "", _overdue(members, min(m.at for m in done), now))
    if run.cancel.asked_at is not None:
        return _ending(elastic, RunState.CANCELED, run.cancel.why or "Canceled as asked.", _alive(members))
    if bad := next((m for m in members if m.state is RunState.FAILED and _exit_code(m) == BAD_INPUT), None):
        return _ending(elastic, RunState.FAILED, bad.why, _alive(members), (run, bad))
    return _replace_lost(run, elastic, now)


def _replace_lost(run: Run, elastic: Elastic, now: datetime) -> MembersPlan:
    """Replace lost members; fail the run when too few members are left or the deadline has passed."""
    late, alive = now >= elastic.deadline, _alive(elastic.members)
    ended_members = (m for m in elastic.members if m.state in FINAL and m.index < DEDICATED_FROM + elastic.dedicated)
    gone = sorted(ended_members, key=lambda m: m.at)
    replaced = gone if run.is_steered else _affordable(elastic, gone)
    if len(alive) + len(replaced) >= elastic.min_nodes and not late:
        members = tuple(with_next_job(m, now) if m in replaced else m for m in elastic.members)
        return MembersPlan(replace(elastic, members=members), _together(_alive(members)), "")
    ended = gone[-1] if gone else None
    why = f"Its deadline, {elastic.deadline:%Y-%m-%d %H:%M} UTC, has passed." if late else _too_few(elastic, alive)
    if ended is None:
        return _ending(elastic, RunState.FAILED, why, alive)
    job = member_job(run.name, ended.index, ended.attempt)
    return _ending(elastic, RunState.FAILED, f"{why} {job}: {ended.why}", alive, (run, ended))


def _affordable(elastic: Elastic, gone: Sequence[Member]) -> list[Member]:
    """The ended members with a right to another job: every evicted member, and other members while resubmissions are
    left.
    """
    evicted = [member for member in gone if member.is_evicted]
    others = [member for member in gone if not member.is_evicted]
    return evicted + others[: max(0, elastic.resubmissions - elastic.resubmitted)]


def _too_few(elastic: Elastic, alive: tuple[Member, ...]) -> str:
    return (
        f"{len(alive)} of at least {elastic.min_nodes} members are left, and all {elastic.resubmissions} resubmissions "
        "are used up."
    )


def _seen(member: Member, status: JobStatus | None, now: datetime) -> Member:
    if status is None or RunState(status.state) is member.state or member.state in FINAL:
        return member
    state = RunState(status.state)
    member = with_(member, ran=seconds_ran(member, now))
    if member.state is RunState.RUNNING:
        member = with_(member, asked_at=now)
    elif state is RunState.RUNNING:
        waited = (now - (member.asked_at or member.at)).total_seconds()
        member = with_(member, asked_at=None, waited=waited)
    if state is RunState.FAILED:
        why = status.failure.summary or "Its job failed."
        return with_(member, state=state, at=now, why=why, failure=status.failure)
    if state is RunState.CANCELED:
        return with_(member, state=state, at=now, why=status.error or "Its job was canceled.")
    if state is RunState.COMPLETED:
        return with_(member, state=state, at=now, why="")
    if member.state is RunState.RUNNING and state is RunState.QUEUED:
        return with_(member, state=state, at=now, why=NODE_LOST, failure=JobFailure(FailureCode.LOST_NODES))
    if member.failure and state is RunState.RUNNING:
        return with_(member, state=state, at=now, why=NODE_BACK, failure=None)
    return with_(member, state=state, at=now)


def _exit_code(member: Member) -> int:
    """The exit code of a failed member's process; 0 if unknown."""
    return member.failure.exit_code if member.failure else old_sentences.exit_code(member.why)


def _lost(member: Member, now: datetime) -> JobStatus | None:
    """A failed status for a job that Azure ML has not known for MISSING_FOR; None otherwise."""
    if member.state in (RunState.RECEIVED, *FINAL) or now - member.at < MISSING_FOR:
        return None
    words = "Azure ML no longer has this job."
    return JobStatus("", JobState.FAILED, "", words, failure=JobFailure(summary=words))


def with_next_job(member: Member, now: datetime) -> Member:
    """The member with a new job, not yet submitted."""
    return with_(
        member,
        attempt=member.attempt + 1,
        evictions=member.evictions + member.is_evicted,
        state=RunState.RECEIVED,
        at=now,
        cluster=member.moves_to or member.cluster,
        moves_to="",
        asked_at=member.asked_at or now,
        failure=None,
    )


def _with_losses(run: Run, after: Elastic, now: datetime) -> Elastic:
    """Add the members' losses since the last check. A job that ends with the run or by a cancel is not a loss, unless
    Azure took its node."""
    ends = run.cancel.asked_at is not None or any(m.state is RunState.COMPLETED for m in after.members)
    pairs = [(old, new) for old, new in zip(elastic_of(run).members, after.members, strict=True) if _is_lost(old, new)]
    new = [Loss(now, old.index, old.attempt, m.why) for old, m in pairs if not ends or m.has_lost_node]
    return replace(after, losses=(*after.losses, *new)[-LOSSES_KEPT:]) if new else after


def _is_lost(before: Member, after: Member) -> bool:
    if before.state in FINAL or before.moves_to:
        return False  # already recorded when it ended, or moving to another cluster
    back = before.state is RunState.RUNNING and after.state is RunState.QUEUED
    return back or after.attempt > before.attempt or after.state in (RunState.FAILED, RunState.CANCELED)


def _alive(members: tuple[Member, ...]) -> tuple[Member, ...]:
    return tuple(m for m in members if m.state not in FINAL)


def _overdue(members: tuple[Member, ...], done_at: datetime, now: datetime) -> tuple[Member, ...]:
    """Members to cancel after the end of the training: members without a node, and members that run too long."""
    patient = now - done_at < GRACE
    return tuple(m for m in _alive(members) if not (patient and m.state is RunState.RUNNING))


def _ending(
    elastic: Elastic, state: RunState, why: str, to_cancel: tuple[Member, ...], failed: tuple[Run, Member] | None = None
) -> MembersPlan:
    """End the run in this state after the end of every member. Until then the run's state follows the live members.

    `failed` is the run and the member whose job explains a failure.
    """
    never_sent = {m.index for m in to_cancel if m.state is RunState.RECEIVED}
    members = tuple(with_(m, state=RunState.CANCELED) if m.index in never_sent else m for m in elastic.members)
    elastic, alive = replace(elastic, members=members), _alive(members)
    plan = MembersPlan(elastic, _together(alive) if alive else state, why, to_cancel)
    if failed is None:
        return plan
    run, member = failed
    job = member_job(run.name, member.index, member.attempt)
    return replace(plan, failed_job=job, failure=member.failure)


def _together(alive: tuple[Member, ...]) -> RunState:
    """The state of a run with live members: the most advanced state among them."""
    states = {m.state for m in alive}
    return next((s for s in (RunState.RUNNING, RunState.QUEUED) if s in states), RunState.SUBMITTED)


def _sizes(sizes: tuple[Size, ...], members: tuple[Member, ...], now: datetime) -> tuple[Size, ...]:
    """The run's size over time, with the current size if it changed. Long histories keep the first and last entries."""
    running = sum(m.state is RunState.RUNNING for m in members)
    if running == (sizes[-1].nodes if sizes else 0):
        return sizes
    sizes = (*sizes, Size(now, running))
    return sizes if len(sizes) <= SIZES_KEPT else sizes[: SIZES_KEPT // 2] + sizes[-SIZES_KEPT // 2 :]


def _further_sizes(run: Run, members: tuple[Member, ...], now: datetime) -> dict[str, tuple[Size, ...]]:
    """The number of running members over time on each additional cluster.

    Additional clusters exclude the run's first cluster and the cluster of dedicated nodes.
    """
    before = elastic_of(run).further_sizes
    elsewhere = {m.cluster for m in members if m.cluster and not m.is_dedicated} - {run.on_cluster}
    names = sorted(elsewhere | before.keys())
    there = {name: tuple(m for m in members if m.cluster == name) for name in names}
    all_sizes = {name: _sizes(before.get(name, ()), there[name], now) for name in names}
    return {name: sizes for name, sizes in all_sizes.items() if sizes}
