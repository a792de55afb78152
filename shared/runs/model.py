"""Runs: their records, and the states they go through.

Everything that decides which state may follow which is in the table below; what is not in it is illegal and changes
nothing, so a late or repeated event can be applied without a thought. Nothing here reads a clock or a service.

A run goes from left to right. Only a preempted job goes back, from running to queued, and that costs an attempt.
The three states on the right are final: nothing leaves them.

    received -> submitted -> queued <-> running -> completed | failed | canceled

Archiving is no state: a final run has `archived_at` once its manifest is written.

Each part of a run has one writer; all write under the row's etag, and merge only their own columns. What features add
is not declared here: a run holds their parts by their types (shared/runs/features.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from shared.jobs.model import FailureCode, JobFailure
from shared.jobs.spec import JobSpec
from shared.kernel.parts import column, from_columns, of_features, part
from shared.runs.codes import CancelCode, Deed
from shared.runs.steps import Step

P = TypeVar("P")
PIPELINE, ELASTIC = "pipeline", "elastic"  # kinds of runs


class RunState(StrEnum):
    RECEIVED = "received"
    SUBMITTED = "submitted"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    BROKEN = "broken"  # its row can't be read; only shown, never written


FINAL = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELED})
LIVE = (RunState.RECEIVED, RunState.SUBMITTED, RunState.QUEUED, RunState.RUNNING)


# A job may be seen at any later state first, because events get lost: skipping forward is legal.
_S = RunState


TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    _S.RECEIVED: frozenset({_S.SUBMITTED, _S.QUEUED, _S.RUNNING}) | FINAL,
    _S.SUBMITTED: frozenset({_S.QUEUED, _S.RUNNING}) | FINAL,
    _S.QUEUED: frozenset({_S.RUNNING}) | FINAL,
    _S.RUNNING: frozenset({_S.QUEUED}) | FINAL,
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELED: frozenset(),
    _S.BROKEN: frozenset(),
}


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """One line of a run's history. `failure` is set if a job failed, and says why."""

    state: RunState
    at: datetime
    why: str = ""
    failure: FailureCode | None = None


class Note(msgspec.Struct, frozen=True, array_like=True):
    """What someone wrote on a run. `by` is who, as the API knows them, `by_id` their object id in Entra ID."""

    text: str
    by: str
    at: datetime
    by_id: str = ""


class Audited(msgspec.Struct, frozen=True, array_like=True):
    """What someone did to a run after it was made: its tags changed, a member evicted. By whom, as in a Note."""

    what: str
    by: str
    at: datetime
    by_id: str = ""
    deed: Deed = Deed.NONE


DEDICATED_FROM = 1000  # the numbers of members on dedicated nodes, in a run with a date


class Member(msgspec.Struct, frozen=True, array_like=True):
    """One node's place in an elastic run. Its jobs follow each other; `attempt` counts them from 1.

    `state` is that of its present job, since `at`; `why` says what ended the job before, or this one, and nothing of a
    member that completed. `ran` is for how many seconds its jobs ran until then.

    In a run with a date: `cluster` is where its job is, '' where the run's other ones are; `moves_to` where its next
    job goes, once this one has ended. It has had no node since `asked_at`; the last one took `waited` seconds.

    `failure` says why its present job failed, or that the job lost its node and waits for another.
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

    @property
    def is_dedicated(self) -> bool:
        return self.index >= DEDICATED_FROM


class Loss(msgspec.Struct, frozen=True, array_like=True):
    """A member of an elastic run lost its node, or its job ended early: which job, when and why."""

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
    """What makes a run elastic: single-node jobs, its members, that meet in the rendezvous under the run's name.

    At least `min_nodes` and at most `Run.nodes` of them train together. `resubmissions` is how many jobs may replace
    others; none does so after `deadline`. `losses` are the newest ones.
    """

    min_nodes: int
    resubmissions: int
    deadline: datetime
    members: tuple[Member, ...]
    sizes: tuple[Size, ...] = ()
    dedicated: int = 0  # how many further members a run with a date has on dedicated nodes now
    dedicated_sizes: tuple[Size, ...] = ()  # of these alone
    further_sizes: dict[str, tuple[Size, ...]] = field(default_factory=dict)  # of those on further clusters
    losses: tuple[Loss, ...] = ()

    @property
    def resubmitted(self) -> int:
        return sum(member.attempt - 1 for member in self.members if not member.is_dedicated)


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """On which cluster a run's job is since `at`."""

    at: datetime
    cluster: str


class Cost(msgspec.Struct, frozen=True, array_like=True):
    """What a run's nodes have cost until `at`, in dollars: training, waiting for all of them, idling after it.

    `unpriced` says that for some of its `node_seconds` no price is known; they are not in the dollars.
    """

    training: float
    allocation: float
    idle: float
    node_seconds: float
    at: datetime
    unpriced: bool = False

    @property
    def dollars(self) -> float:
        return self.training + self.allocation + self.idle


@dataclass(frozen=True)
class Asked:
    """What was asked for: the job, and what it is made from. Written when the run is recorded, and never again.

    `request` is the job before code and environment have ids. `drop` and `route` are empty for a run that was asked
    for without one. `digest` is that of the request, or of what else made the run's name.
    """

    drop: str
    route: str
    fingerprint: str  # of the drop's content
    experiment: str
    cluster: str
    nodes: int
    request: JobSpec = field(default_factory=JobSpec)
    digest: str = column("asked", "")
    retry_of: str = ""  # the run whose job this one repeats
    continues: str = ""  # the run whose training this one goes on with
    from_run: str = ""  # the run whose model this one began with
    resubmissions: int = 0  # how many jobs may follow one whose nodes were taken; an elastic run has its own number
    generation: int = 0  # of its drop: the data that it was made for; 0 where the drop had none yet
    parameters: dict[str, Any] = field(default_factory=dict)  # the job's, those at their defaults too
    keep_warm_seconds: float = 0.0  # how long its nodes stay up after its end
    timeout_seconds: int = 0  # of its job; 0 where nobody wrote it down
    reads: tuple[str, ...] = ()  # the places below the drops container that its job's inputs name
    kind: str = ""  # of runs/progress/workloads.py; '' for a single job


@dataclass(frozen=True)
class Progress:
    """Where it stands. The transitions write it, and the check of its data `trained_on` and `data_note`.

    `trained_on` is a word of trained_on.py, '' until it is known; `data_note` says why, unless it is what is recorded.
    """

    state: RunState = RunState.RECEIVED
    history: tuple[Moment, ...] = ()
    attempts: int = 0
    reason: str = ""
    data_note: str = ""
    trained_on: str = ""
    failure: JobFailure | None = None  # of the job that made it fail; None in rows of older versions


@dataclass(frozen=True)
class Jobs:
    """Its jobs in Azure ML. The submission and the two workloads write it."""

    job: str = ""  # the sign that it was submitted
    code: str = ""
    environment: str = ""
    number: int = column("job_number", 1)  # which of its jobs it is at; always 1 for an elastic run
    resubmit: bool = False  # whether that job is still to be sent
    elastic: Elastic | None = None  # None for a run that is one job
    steps: tuple[Step, ...] = ()  # of a pipeline, in the order of its file
    places: tuple[Placed, ...] = ()  # where its jobs were, if a feature chooses their cluster as it goes
    moves_to: str = ""  # the cluster of its next job, once the present one has ended
    moves_why: str = ""  # why it moves there


@dataclass(frozen=True)
class Money:
    """What it costs, in dollars. The purse writes it before the run starts, the books write `cost` from then on."""

    project: str = ""  # whose budget it is charged to
    price: float = 0.0  # an hour for one node when it was submitted; 0 if unknown
    price_from: str = ""  # who says that price, or why it is unknown
    estimated: float | None = column("estimated_cost", None)  # as such runs usually cost
    greatest: float | None = column("greatest_cost", None)  # if it takes all of its time limit
    allowed: float | None = column("cost_allowed", None)  # by its budget, where that is less than the greatest
    cost: Cost | None = None  # so far


@dataclass(frozen=True)
class Archive:
    """Its archive. Archiving writes it, and the hourly look `tries` and `gave_up_at`."""

    output: str = ""  # output/<experiment>/<run>, once archiving has begun
    last_metrics: dict[str, float] = field(default_factory=dict)
    best_metrics: dict[str, float] = field(default_factory=dict)
    hardware: str = ""  # GPUs, driver and CUDA, or the processor, as the node's trainer told; '' if it told nothing
    at: datetime | None = column("archived_at", None)
    tries: int = column("archive_tries", 0)
    error: str = column("archive_error", "")  # why it could not be archived
    gave_up_at: datetime | None = None  # when archiving was abandoned


@dataclass(frozen=True)
class People:
    """Whose it is, and what people wrote on it. `owner_id` is the stable Entra object id of the owner."""

    owner: str = ""  # who asked for it, as the API knows them
    owner_id: str = ""
    tags: dict[str, str] = field(default_factory=dict)  # the user's own, to find it by
    notes: tuple[Note, ...] = ()  # oldest first
    audit: tuple[Audited, ...] = ()  # what people did to it, oldest first; the newest ones of very many


@dataclass(frozen=True)
class Cancel:
    """That it is to end. The first cancel writes it; `by` is empty where the system asked, and `why` then says it."""

    asked_at: datetime | None = column("cancel_asked_at", None)
    why: str = column("cancel_why", "")
    code: CancelCode = column("cancel_code", CancelCode.NONE)
    by: str = column("canceled_by", "")
    by_id: str = column("canceled_by_id", "")


@dataclass(frozen=True)
class Removed:
    """What was let go of it. Removals write it; `cleared`: what retention took, checkpoints or copies."""

    at: datetime | None = column("removed_at", None)  # when someone asked for all that it left to go
    by: str = column("removed_by", "")
    by_id: str = column("removed_by_id", "")
    cleared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One training, from submission to archive, in parts with one writer each. In tables and answers it is flat."""

    name: str
    created_at: datetime
    asked: Asked = part(Asked, required=True)
    progress: Progress = part(Progress)
    jobs: Jobs = part(Jobs)
    money: Money = part(Money)
    archive: Archive = part(Archive)
    people: People = part(People)
    cancel: Cancel = part(Cancel)
    removed: Removed = part(Removed)
    features: Mapping[type, Any] = of_features()

    @property
    def on_cluster(self) -> str:
        """Where its present job is, or its low-priority members."""
        return self.jobs.places[-1].cluster if self.jobs.places else self.asked.cluster

    @property
    def is_steered(self) -> bool:
        """Whether a feature chooses the cluster of its jobs, and sees to its end: jobs that lost their nodes are then
        replaced without a limit."""
        return bool(self.jobs.places)

    def feature(self, kind: type[P]) -> P | None:
        """What a feature added to the run; None for a run without it."""
        value: P | None = self.features.get(kind)
        return value

    def having(self, *values: object) -> Run:
        """The run with these parts of features, each in the place of one of its type."""
        return replace(self, features={**self.features, **{type(value): value for value in values}})

    @classmethod
    def of(cls, **values: Any) -> Run:
        """The run with these columns."""
        return from_columns(cls, values)
