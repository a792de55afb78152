"""The members of an elastic run, and their jobs' names. One column of the run's row."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from shared.jobs.model import FailureCode, JobFailure
from shared.kernel.errors import Impossible
from shared.runs.model import Run, RunState

KIND = "elastic"  # of the run
DEDICATED_FROM = 1000  # members on dedicated nodes, in a run with a deadline, have numbers from here on


class Member(msgspec.Struct, frozen=True, array_like=True):
    """One node's place in an elastic run. A member has one job at a time; `attempt` counts the jobs from 1.

    `state` is the state of the current job since `at`. `why` explains the end of the previous or the current job; `why`
    is empty for a completed member. `ran` is the total running time, in seconds, of the member's jobs before `at`.

    For a run with a deadline, `cluster` is the member's cluster ('': the run's own cluster), and `moves_to` is the
    cluster of the member's next job, which starts when the current job ends. `asked_at` is the time since which the
    member has waited for a node. `waited` is the duration, in seconds, of the latest finished wait.

    `failure` explains why the current job failed, or records that the job lost its node and waits for another node.
    `evictions` counts the member's jobs that failed because Azure took their node.
    """

    index: int
    attempt: int
    state: RunState
    at: datetime
    why: str = ""
    ran: float = 0.0
    cluster: str = ""
    moves_to: str = ""
    asked_at: datetime | None = None
    waited: float = 0.0
    failure: JobFailure | None = None
    evictions: int = 0

    @property
    def is_dedicated(self) -> bool:
        return self.index >= DEDICATED_FROM

    @property
    def has_lost_node(self) -> bool:
        """Whether Azure took the node of the current job, and the job failed or waits for another node."""
        return self.failure is not None and self.failure.code is FailureCode.LOST_NODES

    @property
    def is_evicted(self) -> bool:
        """Whether the current job failed because Azure took its node."""
        return self.has_lost_node and self.state is RunState.FAILED


class Loss(msgspec.Struct, frozen=True, array_like=True):
    """A member of an elastic run lost its node, or the member's job ended early."""

    at: datetime
    index: int
    attempt: int
    why: str


class Size(msgspec.Struct, frozen=True, array_like=True):
    """Number of running members of an elastic run since `at`."""

    at: datetime
    nodes: int


@dataclass(frozen=True)
class Elastic:
    """The elastic part of a run: single-node jobs, called members, that share a rendezvous named after the run.

    At least `min_nodes` and at most `Run.nodes` members train together. `resubmissions` is the maximum number of
    replacement jobs, not counting replacements of evicted jobs; no replacement is submitted after `deadline`. `losses`
    holds the newest losses.
    """

    min_nodes: int
    resubmissions: int
    deadline: datetime
    members: tuple[Member, ...]
    sizes: tuple[Size, ...] = ()
    dedicated: int = 0  # number of additional members on dedicated nodes, for a run with a deadline
    dedicated_sizes: tuple[Size, ...] = ()  # the sizes of the members on dedicated nodes
    # The sizes of the members on each additional cluster, by cluster
    further_sizes: dict[str, tuple[Size, ...]] = field(default_factory=dict)
    losses: tuple[Loss, ...] = ()

    @property
    def resubmitted(self) -> int:
        return sum(member.attempt - 1 - member.evictions for member in self.members if not member.is_dedicated)


def elastic_of(run: Run) -> Elastic:
    """The elastic part of the run. Raises Impossible for a run without members."""
    if elastic := run.feature(Elastic):
        return elastic
    words = f"Run {run.name} has no members; only a member of an elastic run can be evicted."
    raise Impossible(words, "not_elastic")


def member_job(run: str, index: int, attempt: int) -> str:
    """The name of the Azure ML job of an elastic run's member. runs/names.py finds the run of a job by its name."""
    return f"{run}-m{index}-{attempt}"


def seconds_ran(member: Member, now: datetime) -> float:
    """Total running time of the member's jobs until now, in seconds."""
    return member.ran + ((now - member.at).total_seconds() if member.state is RunState.RUNNING else 0.0)
