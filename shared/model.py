"""Drops, runs and clusters: their records and the states they go through.

Two rules hold here. Everything that decides which state may follow which is in the two tables below; what is not in
a table is illegal and changes nothing, so a late or repeated event can be applied without a thought. And nothing here
reads a clock, a setting or a service.

A drop collects uploads until it closes, again and again:

    (none) -> open -> sealing -> sealed -> open ...    each sealing of new content is a generation, and one run
                   -> rejected -> open ...             why is on the drop; another upload opens it again
                   -> (none)                           every blob was deleted before it closed

Sealing is the write-ahead mark: the drop names its run, and whoever finds it so makes that run and goes on to sealed.

A run goes from left to right. Only a preempted job goes back, from running to queued, and that costs an attempt.
The three states on the right are final: nothing leaves them.

    received -> submitted -> queued <-> running -> completed | failed | canceled

Archiving is no state: a final run has `archived_at` once its manifest is written.

Who writes which field of a run (one writer each): intake writes what the run is, `submit` writes job, code and
environment, `follow` writes state, history, attempts, reason and elastic, `archive` writes output, metrics and
archived_at, `cancel` writes cancel_asked_at. The first two also write their own step into state and history, under the
row's etag.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class DropState(StrEnum):
    OPEN = "open"
    SEALING = "sealing"
    SEALED = "sealed"
    REJECTED = "rejected"


class RunState(StrEnum):
    RECEIVED = "received"
    SUBMITTED = "submitted"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


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
}


@dataclass(frozen=True)
class Stored(Generic[T]):
    """A record as it was read, with the etag that guards the next write."""

    value: T
    etag: str


# --- names -----------------------------------------------------------------------------------------------------------

_SEGMENT_LIMIT = 200  # characters of a route's or a drop's name; a whole blob name has at most 1,024
_FILE_NAME_LIMIT = 255  # bytes of one path segment on the nodes' file systems (ext4, NTFS in characters)
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
JOB_FILES = ("job.yaml", "job.yml", "job.json")
SUCCESS_MARKER = "_SUCCESS"


@dataclass(frozen=True, order=True)
class DropKey:
    """The name of a drop: `route/name`, the first two segments of its blobs' names in the drops container.

    Any text can be one, so that a drop with an unusable name can be recorded as rejected; `problem` says why.
    """

    route: str
    name: str

    def __str__(self) -> str:
        return f"{self.route}/{self.name}"

    @classmethod
    def of(cls, blob_name: str) -> DropKey:
        """The drop that this blob belongs to."""
        route, _, rest = blob_name.partition("/")
        return cls(route, rest.partition("/")[0])

    def problem(self) -> str | None:
        """Why this can't be a drop, as a sentence, or None."""
        for what, segment in (("route", self.route), ("name", self.name)):
            if fault := _segment_fault(segment, _SEGMENT_LIMIT):
                return f"{str(self)[:80]!r} is no drop: its {what} {fault}. Upload to drops/<route>/<name>/<files>."
        return None

    def prefix(self) -> str:
        """The prefix of the drop's blobs. A single-file drop is the blob of that name without the slash."""
        return f"{self}/"

    def is_archive(self) -> bool:
        """Whether the drop is a single archive right in the route's folder."""
        return self.name.lower().endswith(ARCHIVE_SUFFIXES)


def path_problem(path: str) -> str | None:
    """Why a node could not write this path below a folder of its own, as a sentence, or None."""
    for segment in path.split("/"):
        if fault := _segment_fault(segment, _FILE_NAME_LIMIT, in_bytes=True):
            return f"The name {path[:80]!r} can't be a file on a node: a segment {fault}."
    return None


def _segment_fault(segment: str, limit: int, in_bytes: bool = False) -> str | None:
    length = len(segment.encode(errors="replace")) if in_bytes else len(segment)
    if not segment:
        return "is empty"
    if segment in (".", ".."):
        return f"is {segment!r}"
    if length > limit:
        return f"has {length} {'bytes' if in_bytes else 'characters'}, the limit is {limit}"
    if "\\" in segment or any(unicodedata.category(c) in ("Cc", "Cs") for c in segment):
        return "has a backslash or a control character"
    return None


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


# --- blobs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blob:
    """One blob as a listing shows it. `md5` is lower-case hex, and empty where the service doesn't know it."""

    name: str
    etag: str
    size: int
    md5: str = ""
    last_modified: datetime | None = None
    metadata: dict[str, str] = field(default_factory=dict, compare=False)


# --- records ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drop:
    """A folder (or single file) under the drops container, between its first upload and its runs.

    `token` names the current opening; a check that carries another token is stale. `generation` counts sealings with
    new content. `fingerprint`, `run`, `request`, `blobs` and `bytes` are those of the last sealing. `newest` is the
    newest last-modified time that the last verdict saw, `looked_at` when that verdict listed the drop: together they
    tell late events from new ones. `listed` is the fingerprint of that listing.
    """

    key: DropKey
    state: DropState
    token: str
    opened_at: datetime
    generation: int = 0
    fingerprint: str = ""
    run: str = ""
    request: dict[str, Any] = field(default_factory=dict)
    blobs: int = 0
    bytes: int = 0
    sealed_at: datetime | None = None
    newest: datetime | None = None
    looked_at: datetime | None = None
    listed: str = ""
    why: str = ""  # why it was sealed or rejected, or why it is still open, in words for its owner
    code: str = ""  # the same, stable


@dataclass(frozen=True)
class Moment:
    """One line of a run's history."""

    state: RunState
    at: datetime
    why: str = ""


@dataclass(frozen=True)
class Member:
    """One node's place in an elastic run. Its jobs follow each other; `attempt` counts them from 1.

    `state` is that of its present job, since `at`; `why` says what ended the job before, or this one.
    """

    index: int
    attempt: int
    state: RunState
    at: datetime
    why: str = ""


@dataclass(frozen=True)
class Size:
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


_MEMBER_JOB = re.compile(r"(.+)-m\d{1,4}-\d{1,4}")  # a plain run's name ends with 16 digits, so it is none


def member_job(run: str, index: int, attempt: int) -> str:
    """The name of the Azure ML job of a member of an elastic run."""
    return f"{run}-m{index}-{attempt}"


def run_of_job(job: str) -> str:
    """The name of the run that a job of this name belongs to."""
    match = _MEMBER_JOB.fullmatch(job)
    return match[1] if match else job


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
    request: dict[str, Any] = field(default_factory=dict)
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
    cancel_asked_at: datetime | None = None
    elastic: Elastic | None = None  # None for a run that is one job


@dataclass(frozen=True)
class Cluster:
    """An Azure ML AmlCompute as it is now. `busy_nodes` are those that prepare or run something."""

    name: str
    min_nodes: int
    max_nodes: int
    idle_seconds: float
    nodes: int = 0
    busy_nodes: int = 0
    tier: str = ""
    vm_size: str = ""


@dataclass(frozen=True)
class Decision:
    """What a sweep decided about a cluster, and why. `idle_since` is None while something keeps it busy."""

    cluster: str
    action: str  # "keep" or "to-zero"
    code: str
    why: str
    at: datetime
    idle_since: datetime | None = None


@dataclass(frozen=True)
class JobStatus:
    """A job as Azure ML tells it now. `error` is its own account of a failure."""

    name: str
    state: RunState
    raw: str
    error: str = ""


@dataclass(frozen=True)
class Problem:
    """One fault in a job: where (a path like `limits.timeout`) and what."""

    path: str
    message: str
