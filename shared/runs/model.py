"""The record of a run, the states, and the legal transitions.

TRANSITIONS below is the complete table of legal transitions. A transition that is missing from the table is illegal and
changes nothing, so a late or repeated event can be applied safely. This module is pure: no clock, no service.

A run moves from left to right. Only preemption moves a run back, from running to queued, and each preemption starts a
new attempt. The three states on the right are final: a run never leaves a final state.

    received -> submitted -> queued <-> running -> completed | failed | canceled

Archiving is not a state: a final run has `archived_at` once the archive's manifest is written.

Each part of a run has one writer. All writers use the row's etag and merge only their own columns. Parts that are read
as a whole take one column. Features declare their own parts elsewhere; a run stores the features' parts by type
(shared/runs/features.py).
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
from shared.kernel.parts import column, from_columns, labeled, of_features, part
from shared.runs.codes import CancelCode, Deed

P = TypeVar("P")
BY_TRAINER, LAST_VALUE = "trainer", "last value"  # where the metrics of a model are from


class RunState(StrEnum):
    RECEIVED = "received"
    SUBMITTED = "submitted"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    BROKEN = "broken"  # the run's row can't be read; the state is shown but never written


FINAL = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELED})
LIVE = (RunState.RECEIVED, RunState.SUBMITTED, RunState.QUEUED, RunState.RUNNING)


# Events get lost, so the first observed state of a job may be any later state: skipping states is legal.
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
    """One entry of a run's history. `failure` is the failure code if a job failed."""

    state: RunState
    at: datetime
    why: str = ""
    failure: FailureCode | None = None


class Note(msgspec.Struct, frozen=True, array_like=True):
    """A person's note on a run. `by` is the author's name as the API knows it, `by_id` the author's Entra object id."""

    text: str
    by: str
    at: datetime
    by_id: str = ""


class Audited(msgspec.Struct, frozen=True, array_like=True):
    """A person's action on an existing run, such as a changed tag or an evicted member. `by` and `by_id` as in Note."""

    what: str
    by: str
    at: datetime
    by_id: str = ""
    deed: Deed = Deed.NONE


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """The cluster of a run's jobs since `at`."""

    at: datetime
    cluster: str


class Cost(msgspec.Struct, frozen=True, array_like=True):
    """The cost of a run's nodes until `at`, in dollars: training, waiting for the full set of nodes, idling afterwards.

    `unpriced`: some of the `node_seconds` have no known price, and the dollar amounts exclude these seconds.
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
class Requested:
    """The request: the job and the origin. Written once, when the run is recorded.

    `request` is the job before its code and environment have ids. `drop` and `route` are empty for a run that was
    requested without a drop or a route. `digest` is the digest of the request, or of the text from which the run's name
    was made.
    """

    drop: str
    route: str
    fingerprint: str  # of the drop's content
    experiment: str
    cluster: str
    nodes: int
    request: JobSpec = field(default_factory=JobSpec)
    digest: str = column("asked", "")
    retry_of: str = ""  # the run whose job this run repeats
    continues: str = ""  # the run whose training this run continues
    from_run: str = ""  # the run whose model this run starts from
    resubmissions: int = 0  # maximum number of jobs after lost nodes
    generation: int = 0  # the drop's generation at the time of the request; 0 if the drop had none
    parameters: dict[str, Any] = field(default_factory=dict)  # the job's parameters, including the defaults
    keep_warm_seconds: float = 0.0  # seconds for which the run's nodes stay up after the run ends
    timeout_seconds: int = 0  # the job's time limit; 0 if none is recorded
    reads: tuple[str, ...] = ()  # paths below the drops container that the job's inputs name
    kind: str = ""  # a kind in runs/progress/workloads.py; '' for a single job


@dataclass(frozen=True)
class Progress:
    """The state of the run, and the history. Transitions write this part."""

    state: RunState = RunState.RECEIVED
    history: tuple[Moment, ...] = ()
    attempts: int = 0
    reason: str = ""
    failure: JobFailure | None = None  # of the job that made the run fail; None in rows of older versions


@dataclass(frozen=True)
class CheckedData:
    """Whether the run trained on the recorded data. The data check writes this part.

    `trained_on` is a value of trained_on.TrainedOn, '' until known. `note` explains `trained_on`; the note is empty for
    `recorded`.
    """

    trained_on: str = ""
    note: str = column("data_note", "")


@dataclass(frozen=True)
class RunJobs:
    """The run's jobs in Azure ML. The submission and the workloads write this part."""

    job: str = ""  # the name of the current job; '' until the run is submitted
    code: str = ""
    environment: str = ""
    number: int = column("job_number", 1)  # number of the current job, from 1
    resubmit: bool = False  # whether the current job still has to be submitted


@dataclass(frozen=True)
class Moves:
    """The clusters of the run's jobs, if a feature chooses them. The feature and the kind of run write this part."""

    places: tuple[Placed, ...] = ()  # the clusters over time
    to: str = column("moves_to", "")  # the cluster of the next job, which starts when the current job has ended
    why: str = column("moves_why", "")  # the reason for the move


@dataclass(frozen=True)
class Money:
    """The cost of the run, in dollars. Admission writes this part before the start; the books update `cost` later."""

    project: str = labeled("Project", "", listed=True)  # the project whose budget pays for the run
    price: float = 0.0  # dollars per node-hour at submission; 0 if unknown
    price_from: str = ""  # the source of the price, or why the price is unknown
    estimated: float | None = column("estimated_cost", None)  # from the usual duration of similar runs
    greatest: float | None = column("greatest_cost", None)  # the cost if the run uses its whole time limit
    allowed: float | None = column("cost_allowed", None)  # the limit set by the budget, if lower than `greatest`
    cost: Cost | None = None  # cost so far


@dataclass(frozen=True)
class Archive:
    """The run's archive. Archiving writes this part."""

    output: str = ""  # output/<experiment>/<run>, once archiving has started
    at: datetime | None = column("archived_at", None)


@dataclass(frozen=True)
class Archiving:
    """Failed attempts to archive the run. The hourly reconcile writes `tries` and `gave_up_at`."""

    tries: int = column("archive_tries", 0)
    error: str = column("archive_error", "")  # why the last attempt failed
    gave_up_at: datetime | None = None  # when archiving was abandoned


@dataclass(frozen=True)
class Measured:
    """The metrics of the run, by name, and the hardware that trained the model. Archiving writes this part."""

    last: dict[str, float] = column("last_metrics", factory=dict)
    best: dict[str, float] = column("best_metrics", factory=dict)
    best_steps: dict[str, float] = field(default_factory=dict)  # the step of each best value, where it is known
    # Metrics of the saved weights, and the step at which the weights were saved, from the trainer; goals by metric
    saved: dict[str, float] = column("saved_metrics", factory=dict)
    saved_step: int | None = None
    goals: dict[str, str] = field(default_factory=dict)
    # GPUs, driver and CUDA, or the processor, as reported by the trainer; '' if nothing was reported
    hardware: str = labeled("Trained with", "")

    @property
    def of_model(self) -> dict[str, float]:
        """The metrics of the model that the run left: by the trainer's word, otherwise the last values."""
        return {**self.last, **self.saved}

    def said_by(self, metric: str) -> str:
        """Where the value in `of_model` is from."""
        return BY_TRAINER if metric in self.saved else LAST_VALUE


@dataclass(frozen=True)
class People:
    """The run's owner, and people's tags, notes and actions. `owner_id` is the owner's stable Entra object id."""

    owner: str = ""  # who requested the run, as the API knows the person
    owner_id: str = ""
    tags: dict[str, str] = field(default_factory=dict)  # the user's own tags, for finding the run
    notes: tuple[Note, ...] = ()  # oldest first
    audit: tuple[Audited, ...] = ()  # people's actions, oldest first; limited to the newest


@dataclass(frozen=True)
class Cancel:
    """The request to cancel the run. The first cancel writes this part.

    `by` is empty if the system requested the cancel; `why` then gives the reason.
    """

    asked_at: datetime | None = column("cancel_asked_at", None)
    why: str = column("cancel_why", "")
    code: CancelCode = column("cancel_code", CancelCode.NONE)
    by: str = column("canceled_by", "")
    by_id: str = column("canceled_by_id", "")


@dataclass(frozen=True)
class Warned:
    """The last warning of the watch over running runs, such as idle GPUs. The watch writes this part."""

    warning: str = labeled("Warning", "", listed=True)  # one or two words; '' without a warning
    warned_because: str = labeled("Warned because", "")


@dataclass(frozen=True)
class Removed:
    """Deleted results of the run.

    Removals write this part. `cleared`: what retention deleted, checkpoints or copies.
    """

    at: datetime | None = column("removed_at", None)  # when someone requested the removal of all the run's results
    by: str = column("removed_by", "")
    by_id: str = column("removed_by_id", "")
    cleared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One training, from submission to archive, in parts with one writer each. Tables and API responses are flat."""

    name: str
    created_at: datetime
    asked: Requested = part(Requested, required=True)
    progress: Progress = part(Progress)
    data: CheckedData = part(CheckedData, column="data")
    jobs: RunJobs = part(RunJobs)
    moves: Moves = part(Moves, column="moves")
    money: Money = part(Money, column="money")
    archive: Archive = part(Archive)
    archiving: Archiving = part(Archiving, column="archiving")
    measured: Measured = part(Measured, column="measured")
    people: People = part(People)
    cancel: Cancel = part(Cancel, column="cancel")
    removed: Removed = part(Removed, column="removed")
    warned: Warned = part(Warned)
    features: Mapping[type, Any] = of_features()

    @property
    def on_cluster(self) -> str:
        """The cluster of the current job; for an elastic run, the cluster of the low-priority members."""
        return self.moves.places[-1].cluster if self.moves.places else self.asked.cluster

    @property
    def is_steered(self) -> bool:
        """Whether a feature chooses the clusters of the run's jobs and decides when the run ends.

        Jobs that lose their nodes are then replaced without a limit.
        """
        return bool(self.moves.places)

    def feature(self, kind: type[P]) -> P | None:
        """The part of a feature in the run; None without such a part."""
        value: P | None = self.features.get(kind)
        return value

    def having(self, *values: object) -> Run:
        """The run with these feature parts. Each part replaces an existing part of the part's type."""
        return replace(self, features={**self.features, **{type(value): value for value in values}})

    @classmethod
    def of(cls, **values: Any) -> Run:
        """Build a run from the values of the columns."""
        return from_columns(cls, values)
