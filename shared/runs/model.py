"""Runs: their records, their names, and the states they go through.

Everything that decides which state may follow which is in the table below; what is not in it is illegal and changes
nothing, so a late or repeated event can be applied without a thought. Nothing here reads a clock or a service.

A run goes from left to right. Only a preempted job goes back, from running to queued, and that costs an attempt.
The three states on the right are final: nothing leaves them.

    received -> submitted -> queued <-> running -> completed | failed | canceled

Archiving is no state: a final run has `archived_at` once its manifest is written.

Who writes which field of a run (one writer each): ask and seal write what the run is, submit writes job, code and
environment, follow writes state, history, attempts, reason and elastic, archive writes output, metrics and archived_at,
cancel writes cancel_asked_at and cancel_why, the books write cost, people write notes and tags. The first two also
write their own step into state and history, under the row's etag.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey


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


RUN_NAME = re.compile(r"[a-z][a-z0-9-]{2,62}")


def asked_run_name(kind: str, what: str) -> str:
    """The name of the run that someone asked for: `run-<16 hex digits>`, the same for the same kind and text.

    It says nothing of what was asked, so that another request under the same Idempotency-Key meets the first one's run.
    """
    return f"run-{hashlib.sha256(f'{kind} {what}'.encode()).hexdigest()[:16]}"


def run_name(drop: DropKey, fingerprint: str) -> str:
    """The name of the run, and of its Azure ML job, that this content of this drop makes: always the same one.

    `<route>-<16 hex digits>`, where the route keeps only letters, digits and dashes. 64 bits: two drops in a million
    meet with a probability of 3e-8.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", drop.route.lower()).strip("-")[:32].strip("-")
    slug = slug if slug[:1].isalpha() else f"run-{slug}".strip("-")
    digest = hashlib.sha256(f"{drop}\n{fingerprint}".encode()).hexdigest()
    return f"{slug}-{digest[:16]}"


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """One line of a run's history."""

    state: RunState
    at: datetime
    why: str = ""


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


class Member(msgspec.Struct, frozen=True, array_like=True):
    """One node's place in an elastic run. Its jobs follow each other; `attempt` counts them from 1.

    `state` is that of its present job, since `at`; `why` says what ended the job before, or this one.
    """

    index: int
    attempt: int
    state: RunState
    at: datetime
    why: str = ""


class Size(msgspec.Struct, frozen=True, array_like=True):
    """From `at` on so many members of an elastic run were running."""

    at: datetime
    nodes: int


@dataclass(frozen=True)
class Elastic:
    """What makes a run elastic: single-node jobs, its members, that meet in the rendezvous under the run's name.

    At least `min_nodes` and at most `Run.nodes` of them train together. `resubmissions` is how many jobs may replace
    others; none does so after `deadline`.
    """

    min_nodes: int
    resubmissions: int
    deadline: datetime
    members: tuple[Member, ...]
    sizes: tuple[Size, ...] = ()

    @property
    def resubmitted(self) -> int:
        return sum(member.attempt - 1 for member in self.members)


# A run's own name ends with 16 digits, so it is none of these.
_FURTHER_JOB = re.compile(r"(.+)-(?:m\d{1,4}-\d{1,4}|a\d{1,4})")


def member_job(run: str, index: int, attempt: int) -> str:
    """The name of the Azure ML job of a member of an elastic run."""
    return f"{run}-m{index}-{attempt}"


def plain_job(run: str, number: int) -> str:
    """The name of the Azure ML job of a run that is one job at a time: the first has the run's own."""
    return run if number == 1 else f"{run}-a{number}"


def run_of_job(job: str) -> str:
    """The name of the run that a job of this name belongs to."""
    match = _FURTHER_JOB.fullmatch(job)
    return match[1] if match else job


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
class Run:
    """One training, from submission to archive. `request` is the job as asked for, before code and environment ids.

    `drop` and `route` are empty for a run that was asked for without one. `asked` is then the digest of the request.
    """

    name: str
    drop: str
    route: str
    fingerprint: str
    experiment: str
    cluster: str
    nodes: int
    created_at: datetime
    request: JobSpec = field(default_factory=JobSpec)
    state: RunState = RunState.RECEIVED
    history: tuple[Moment, ...] = ()
    attempts: int = 0
    reason: str = ""
    job: str = ""
    code: str = ""
    environment: str = ""
    output: str = ""  # output/<experiment>/<run>, once archiving has begun
    last_metrics: dict[str, float] = field(default_factory=dict)
    best_metrics: dict[str, float] = field(default_factory=dict)
    archived_at: datetime | None = None
    asked: str = ""
    retry_of: str = ""  # the run whose job this one repeats
    continues: str = ""  # the run whose training this one goes on with
    from_run: str = ""  # the run whose model this one began with
    cancel_asked_at: datetime | None = None
    resubmissions: int = 0  # how many jobs may follow one whose nodes were taken; an elastic run has its own number
    job_number: int = 1  # which of its jobs it is at; always 1 for an elastic run
    resubmit: bool = False  # whether that job is still to be sent
    elastic: Elastic | None = None  # None for a run that is one job
    owner: str = ""  # who asked for it, as the API knows them
    tags: dict[str, str] = field(default_factory=dict)  # the user's own, to find it by
    generation: int = 0  # of its drop: the data that it was made for; 0 where the drop had none yet
    parameters: dict[str, Any] = field(default_factory=dict)  # the job's, those at their defaults too
    data_note: str = ""  # that its data had changed when it started
    archive_tries: int = 0
    archive_error: str = ""  # why it could not be archived
    gave_up_at: datetime | None = None  # when archiving it was given up
    project: str = ""  # whose budget it is charged to
    price: float = 0.0  # dollars an hour for one node when it was submitted; 0 if unknown
    price_from: str = ""  # who says that price, or why it is unknown
    estimated_cost: float | None = None  # dollars, as such runs usually cost
    greatest_cost: float | None = None  # dollars, if it takes all of its time limit
    cost: Cost | None = None  # what it has cost so far
    keep_warm_seconds: float = 0.0  # how long its nodes stay up after its end
    timeout_seconds: int = 0  # of its job; 0 where nobody wrote it down
    removed_at: datetime | None = None  # when someone asked for all that it left to go
    removed_by: str = ""
    cleared: tuple[str, ...] = ()  # what of it retention has let go: checkpoints, copies
    owner_id: str = ""  # who that is for ever, whatever their name becomes: their object id in Entra ID
    cancel_why: str = ""  # why it was asked to end, if not by its owner
    notes: tuple[Note, ...] = ()  # what people wrote on it, oldest first
    removed_by_id: str = ""
    canceled_by: str = ""  # who asked for its end; empty where the system did
    canceled_by_id: str = ""
    audit: tuple[Audited, ...] = ()  # what people did to it, oldest first; the newest ones of very many


def hour_of(at: datetime) -> str:
    """The hour of a run's making, by which Azure ML lists its jobs: 20260131T08."""
    return f"{at.astimezone(UTC):%Y%m%dT%H}"


def start_of_hour(hour: str) -> datetime:
    """The beginning of such an hour. Raises ValueError for other text."""
    return datetime.strptime(hour, "%Y%m%dT%H").replace(tzinfo=UTC)


def hour_has_passed(hour: str, now: datetime) -> bool:
    """Whether no new run can be of this hour, with some time for clocks that differ."""
    return now >= start_of_hour(hour) + timedelta(hours=1, minutes=5)
