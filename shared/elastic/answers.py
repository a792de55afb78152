"""The members of an elastic run in the answers of the HTTP API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Struct

from shared.elastic import model
from shared.elastic.model import member_job, seconds_ran
from shared.elastic.workload import job_of
from shared.kernel.encode import Json, plain
from shared.runs.model import Cost, Run, RunState


class MemberAnswer(Struct):
    member: int
    job: str
    attempt: int
    state: RunState
    at: datetime
    why: str
    seconds: Annotated[float, Meta(description="How long its jobs have run.")]
    cost: Annotated[float | None, Meta(description="Its part of the run's cost, by that time; null while unknown.")]


class LossAnswer(Struct):
    """A member's job without its node, or with an early end."""

    job: str
    at: datetime
    why: str


class SizeAnswer(Struct):
    at: datetime
    nodes: int


class ElasticAnswer(Struct):
    min_nodes: int
    resubmitted: int
    resubmissions: int
    deadline: datetime
    members: list[MemberAnswer]
    sizes: Annotated[list[SizeAnswer], Meta(description="Number of running members, and since when.")]
    losses: Annotated[list[LossAnswer], Meta(description="The newest 100, oldest first.")]


def shown_members(run: Run) -> Json | None:
    """The members, their losses, and the run's size over time; None for a run that is not elastic."""
    elastic, now = run.feature(model.Elastic), datetime.now(UTC)
    if elastic is None:
        return None
    seconds = sum(seconds_ran(member, now) for member in elastic.members)
    return {
        "min_nodes": elastic.min_nodes,
        "resubmitted": elastic.resubmitted,
        "resubmissions": elastic.resubmissions,
        "deadline": plain(elastic.deadline),
        "members": [_shown_member(run, member, seconds, now) for member in elastic.members],
        "sizes": [{"at": plain(size.at), "nodes": size.nodes} for size in elastic.sizes],
        "losses": [
            {"at": plain(loss.at), "job": member_job(run.name, loss.index, loss.attempt), "why": loss.why}
            for loss in elastic.losses
        ],
    }


def _shown_member(run: Run, member: model.Member, of_seconds: float, now: datetime) -> Json:
    ran = seconds_ran(member, now)
    return {
        "member": member.index,
        "job": job_of(run, member),
        "attempt": member.attempt,
        "state": member.state,
        "at": plain(member.at),
        "why": member.why,
        "seconds": round(ran, 1),
        "cost": _share(run.money.cost, ran, of_seconds),
    }


def _share(cost: Cost | None, seconds: float, of_seconds: float) -> float | None:
    """A member's share of the run's cost, by the time that the member's jobs ran."""
    return None if cost is None or not of_seconds else round(cost.dollars * seconds / of_seconds, 4)
