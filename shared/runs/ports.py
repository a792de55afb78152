"""Ports of runs: the run store, and the questions that runs ask money, clusters and drops.

tests/fakes/ports.py and shared/adapters pass the same contract suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypedDict, TypeVar

from shared.jobs.ports import WorkspacePorts
from shared.kernel.drop_key import DropKey
from shared.kernel.parts import FeatureStore, columns
from shared.kernel.versioned import Stored
from shared.runs.facts import RunAdvances, RunBeingArchived
from shared.runs.model import Run, RunState


@dataclass(frozen=True)
class RunFilter:
    """Select the runs that match every given value.

    Empty or None matches any run. `since` is the earliest creation time.

    `owner` is a name or an object id; `tag` is `name=value`. `holds` is an additional predicate, evaluated only for
    runs that match all other values.
    """

    experiment: str = ""
    state: str = ""
    cluster: str = ""
    owner: str = ""
    tag: str = ""
    since: datetime | None = None
    holds: Callable[[Run], bool] | None = None


class RunFields(StrEnum):
    """The fields of the runs of a page. The other fields have their defaults; requests are in no page."""

    ALL = "all"
    ENTRY = "entry"  # a run in the API's list
    ROW = "row"  # a row of a table that people see
    NODES = "nodes"  # which nodes the run waits for, uses, and pays for

    @property
    def marked(self) -> bool:
        """Whether the page has a mark: rows are followed, and reading when each was written takes time."""
        return self in (RunFields.ALL, RunFields.ROW)


_OF_EACH = {"name", "cluster", "created_at", "drop", "experiment", "fingerprint", "history", "nodes", "owner"}
_OF_EACH |= {"owner_id", "route", "state", "tags"}
_ENTRY = {"archived_at", "parameters", "removed_at"}
_ENTRY |= {"best_metrics", "best_steps", "last_metrics", "saved_metrics", "goals"}
_SOME = {
    RunFields.ENTRY: _OF_EACH | _ENTRY,
    RunFields.ROW: _OF_EACH | _ENTRY | {"cost", "failure", "kind", "reason"},
    RunFields.NODES: _OF_EACH | {"cost", "job", "job_number", "kind", "places", "price", "project", "resubmit"},
}


def read_columns(which: RunFields) -> frozenset[str]:
    """Return the columns of a run that a page with these fields reads. ALL and NODES also have the features' parts,
    and ROW those with a cell.
    """
    if which is RunFields.ALL:
        return frozenset(columns(Run)) - {"request"}
    listed = {name for name, each in columns(Run).items() if each.listed} if which is RunFields.ROW else set()
    return frozenset(_SOME[which] | listed)


@dataclass
class RunPage:
    """A page of runs, the token of the next page, and the number of runs that were examined.

    `mark` is the starting point for `changed`: how far back the page reaches, and which write was the latest. Only a
    page with all fields, or with those of a row, has one.
    """

    runs: list[Run]
    token: str
    looked_at: int = field(default=0, compare=False)
    mark: str = field(default="", compare=False)


@dataclass(frozen=True)
class RunChanges:
    """Matching runs that changed, names of runs that no longer match, and the mark for the next call."""

    runs: list[Run]
    gone: list[str]
    mark: str


P = TypeVar("P")


class Reason(TypedDict):
    """A reason why a run could not start. `code` is for programs, `message` for people."""

    code: str
    message: str


@dataclass(frozen=True)
class Refusal:
    """Why a run may not start: a stable code, and a sentence with the remedy."""

    code: str
    why: str


class Admission(Protocol):
    """Decides whether a run is affordable. The money folder implements this port."""

    def project_of(self, tags: Any, route: str) -> str:
        """The project named by a job's tags or its route, '' if neither names one.

        Raises Impossible for an unknown project.
        """

    def priced(self, run: Run) -> Run:
        """The run with its project, price and known costs. A run that already has them is returned unchanged."""

    def admit(self, run: Run) -> None:
        """Reserve the run's maximum cost. A repeat changes nothing. Raises Conflict if the budget is too small."""

    def refusal(self, run: Run) -> Refusal | None:
        """Why the budget would refuse the run now; None if the budget allows the run. Reserves nothing."""

    def usual_seconds(self, run: Run) -> float | None:
        """Median duration, in seconds, of the newest runs of this kind; None without such runs."""


class Capacity(Protocol):
    """Reports whether the workspace's clusters can provide nodes. The clusters folder implements this port."""

    def reasons(self, name: str, nodes: int) -> list[Reason]:
        """Why the cluster can't provide this many nodes now.

        `unknown_cluster` and `too_many_nodes` are permanent reasons.
        """

    def is_low_priority(self, name: str) -> bool:
        """Whether Azure may evict the cluster's nodes. False for an unknown cluster."""


@dataclass(frozen=True)
class Content:
    """The content of a drop at its last seal. `collecting` says why the drop is open now, '' if the drop is sealed."""

    fingerprint: str
    generation: int
    collecting: str = ""


class Datasets(Protocol):
    """Reports the content of drops. The drops folder implements this port."""

    def of(self, drop: DropKey) -> Content | None:
        """The drop's sealed content; None for a drop without uploads. The blobs may have changed since the seal."""

    def kept_in(self, drop: DropKey, generation: int, fingerprint: str) -> str:
        """The folder in the output container with the file list of this generation; '' if no list exists."""


class Runs(Protocol):
    """The run store: one row per run, read by name, newest first, or by the hour of creation.

    A row that can't be read appears in lists as a run in the state `broken`, with the reason.
    """

    def insert(self, run: Run) -> bool:
        """Add the run, and the run's hour to `hours`.

        Returns False, without a change, if a run of this name ever existed.

        A repeat completes a call that crashed half-way, and returns False.
        """

    def get(self, name: str) -> Stored[Run]:
        """Read a run. Raises NotFound with the run's name, and BadInput if the row can't be read."""

    def recent(self, name: str) -> Stored[Run]:
        """Read a run from a ten-second cache. Raises like `get`.

        A run that this process read or wrote in the last ten seconds costs no request. Use the cached run for writes
        under its etag: a stale etag raises Changed. A final state is never stale.
        """

    def update(self, run: Stored[Run], after: Run) -> Stored[Run]:
        """Write the columns that differ between `run` and `after`. Raises Changed if the row no longer has run.etag.

        `run` may have been read without its request: unchanged columns are not written.
        """

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        """Up to `limit` runs, newest first, older than `before`. The number of requests doesn't grow with the table."""

    def page(self, run_filter: RunFilter, limit: int, token: str = "", *, fields: RunFields = RunFields.ALL) -> RunPage:
        """Up to `limit` matching runs, newest first, and the token of the next page, '' after the last page.

        The cost is one request without a filter, and usually one with a single value. Several values, or `holds`, cost
        at most four requests, which examine 4,000 runs; such a page may have fewer than `limit` runs, even none, and
        still have a token. Each run whose row an older version wrote last costs one more request.

        `holds` sees the same fields as the caller. Raises Impossible for an invalid token.
        """

    def changed(self, run_filter: RunFilter, mark: str) -> RunChanges | None:
        """Runs created or written since the mark, back to the oldest run of the marked page. Costs one request.

        An unchanged run may be returned again. Returns None if too many runs changed: read the page again. Raises
        Impossible for an invalid mark.
        """

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        """Up to `limit` run names with this prefix, in order."""

    def live(self) -> list[tuple[str, str, RunState]]:
        """(name, cluster, state) of the runs that have not ended.

        The list includes runs that change state during the call.
        """

    def hours(self) -> list[str]:
        """The hours of creation that may still have unfinished runs, in order."""

    def claim_hour(self, hour: str, now: datetime, seconds: float) -> bool:
        """Claim this hour for a reconcile.

        False if the hour is missing from `hours`, or if another process claimed the hour within the last `seconds`
        seconds.
        """

    def drop_hour(self, hour: str) -> bool:
        """Remove the hour from `hours`.

        False, without a change, if a run was added to the hour since this process's claim.
        """

    def unsettled(self, hour: str, limit: int, before: Run | None = None) -> list[Stored[Run]]:
        """Up to `limit` unarchived runs of the hour, newest first, older than `before`, without their requests."""


class RunPorts(WorkspacePorts, Protocol):
    """The ports of the workspace, the run store, and the questions that runs ask folders built on runs."""

    @property
    def runs(self) -> Runs: ...
    @property
    def admission(self) -> Admission: ...
    @property
    def capacity(self) -> Capacity: ...
    @property
    def datasets(self) -> Datasets: ...

    def store(self, key: FeatureStore[P]) -> P:
        """The store that only one feature uses."""

    def written_with(self, fact: RunAdvances | RunBeingArchived) -> Run:
        """The run with the consequences of the fact, so that one write records both."""
