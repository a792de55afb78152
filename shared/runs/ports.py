"""Where the runs' records are kept. tests/fakes/ports.py and shared/adapters pass the same contract suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypedDict

from shared.jobs.ports import WorkspacePorts
from shared.kernel.drop_key import DropKey
from shared.kernel.versioned import Stored
from shared.runs.facts import RunBeingArchived, RunTakesStep
from shared.runs.model import Run, RunState


@dataclass(frozen=True)
class RunFilter:
    """Which runs fit: those that have all these values. Empty or None is any. `since` is when they were made.

    `owner` is a name or an object id, `tag` is `name=value` of one of the run's tags. `holds` is asked of a run that
    has all these.
    """

    experiment: str = ""
    state: str = ""
    cluster: str = ""
    owner: str = ""
    tag: str = ""
    since: datetime | None = None
    holds: Callable[[Run], bool] | None = None


@dataclass
class RunPage:
    """Some runs, the token of what follows, and among how many runs these were found.

    `mark` is what `changed` goes on from: how far back the page reaches, and what had been written last.
    """

    runs: list[Run]
    token: str
    looked_at: int = field(default=0, compare=False)
    mark: str = field(default="", compare=False)


@dataclass(frozen=True)
class RunChanges:
    """Runs that fit, the names of those that are no longer, and the mark to go on from."""

    runs: list[Run]
    gone: list[str]
    mark: str


class Reason(TypedDict):
    """Why a run could not start. `code` is for programs, `message` for people."""

    code: str
    message: str


@dataclass(frozen=True)
class Refusal:
    """Why a run may not be paid for: a stable code, and a sentence that says what to do."""

    code: str
    why: str


class Purse(Protocol):
    """May this be afforded? Money answers."""

    def project_of(self, tags: Any, route: str) -> str:
        """The project that a job's tags or its route name, '' if neither. Raises Impossible for an unknown one."""

    def priced(self, run: Run) -> Run:
        """The run with its project, price and costs as far as they are known now; one that has them, as it is."""

    def admit(self, run: Run) -> None:
        """Keep back what the run may cost. Twice changes nothing. Raises Conflict if its budget does not allow it."""

    def refusal(self, run: Run) -> Refusal | None:
        """Why its budget would not let the run start now; None if it would. Keeps nothing back."""

    def usual_seconds(self, run: Run) -> float | None:
        """How long the newest runs of this kind took, as their median; None if there are none."""


class Capacity(Protocol):
    """Can the workspace's clusters give these nodes? Clusters answer."""

    def reasons(self, name: str, nodes: int) -> list[Reason]:
        """Why the cluster can't give so many nodes now: unknown_cluster and too_many_nodes are for ever."""


@dataclass(frozen=True)
class Content:
    """What a drop held when it was last sealed; `collecting` says why it is open now, '' if it is not."""

    fingerprint: str
    generation: int
    collecting: str = ""


class Datasets(Protocol):
    """What do drops hold? Drops answer."""

    def of(self, drop: DropKey) -> Content | None:
        """None for a drop that nobody uploaded to. Its blobs may have changed since it was sealed."""

    def kept_in(self, drop: DropKey, generation: int, fingerprint: str) -> str:
        """The folder of the output container with the list of what this generation held; '' if there is none."""


class Runs(Protocol):
    """The runs' records: one row a run, found by name, newest first, or by the hour of its making.

    A row that can't be read is a run in the state broken, with the reason, wherever several runs are given.
    """

    def insert(self, run: Run) -> bool:
        """Add the run, and its hour to `hours`. False, and nothing changes, if a run of this name was ever added.

        A call that died half-way is completed by the next one, which then returns False.
        """

    def get(self, name: str) -> Stored[Run]:
        """The run. Raises NotFound, naming it, and BadInput if its row can't be read."""

    def recent(self, name: str) -> Stored[Run]:
        """The run as it was at some moment of the last ten seconds; raises as `get` does.

        Costs nothing where this process read or wrote it then. For whoever writes under its etag, and finds out by
        Changed that others were quicker. What is final stays so.
        """

    def update(self, run: Stored[Run], after: Run) -> Stored[Run]:
        """Write what differs between the run as it was read and `after`. Raises Changed unless it still has run.etag.

        A run that was read without its request may be given: what does not differ is not written.
        """

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        """Up to `limit` runs, newest first, older than `before`. The number of requests doesn't grow with the table."""

    def page(self, run_filter: RunFilter, limit: int, token: str = "", *, brief: bool = False) -> RunPage:
        """Up to `limit` runs that fit, newest first, and the token of the next page, '' after the last one.

        One request without a filter, and usually with one value. With several, or with `holds`, at most four, which
        look at 4,000 runs. So a page may have fewer than `limit` runs, even none, and yet a token. Runs' requests are
        left out. Of a run that was last written by an older version, one request more.
        Raises Impossible for a token that is none. `brief` leaves out what a row of a table does not show.
        """

    def changed(self, run_filter: RunFilter, mark: str) -> RunChanges | None:
        """What was made or written since a page or a look before, from that page's oldest run on; in one request.

        A run may come again that has not changed since. None where that are too many: read the page anew. Raises
        Impossible for a mark that is none.
        """

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        """Up to `limit` names of runs that begin with this text, in their order."""

    def live(self) -> list[tuple[str, str, RunState]]:
        """(name, cluster, state) of the runs that have not ended. One that goes on meanwhile is among them."""

    def hours(self) -> list[str]:
        """The hours in which runs were made that may not be settled yet, in order."""

    def claim_hour(self, hour: str, now: datetime, seconds: float) -> bool:
        """Take a look at this hour for oneself. False if it is not among `hours`, or someone took it `seconds` ago."""

    def drop_hour(self, hour: str) -> bool:
        """Take the hour off `hours`. False, and it stays, if a run was added to it since this process claimed it."""

    def unsettled(self, hour: str, limit: int, before: Run | None = None) -> list[Stored[Run]]:
        """Up to `limit` runs of the hour that are not archived, newest first, older than `before`, without requests."""


class RunPorts(WorkspacePorts, Protocol):
    """Those of the workspace, the runs, and what runs need of later folders."""

    @property
    def runs(self) -> Runs: ...
    @property
    def purse(self) -> Purse: ...
    @property
    def capacity(self) -> Capacity: ...
    @property
    def datasets(self) -> Datasets: ...

    def written_with(self, fact: RunTakesStep | RunBeingArchived) -> Run:
        """The run with what follows from the fact in the write that makes it true."""
