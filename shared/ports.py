"""What the system needs from the outside. shared/adapters talks to Azure, tests/fakes.py to memory; both pass the
same contract suite. Each method says what happens when it is called twice, late, or on something finished.

All of them may raise errors.Unavailable; the caller's message is then tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.model import Blob, Cluster, Decision, Drop, DropKey, JobStatus, Problem, Run, Stored


class Drops(Protocol):
    """The drops' records. A drop that is open or sealing is also found by `open`, without a scan."""

    def get(self, key: DropKey) -> Stored[Drop] | None:
        """The drop's record, or None."""

    def insert(self, drop: Drop) -> Stored[Drop]:
        """Add a record. Raises Changed if there is one."""

    def replace(self, drop: Drop, etag: str) -> Stored[Drop]:
        """Write the record if it still has this etag. Raises Changed if not, or if it is gone."""

    def delete(self, key: DropKey, etag: str) -> None:
        """Remove the record if it still has this etag. Raises Changed if not; nothing happens if it is gone."""

    def open(self) -> Iterator[Drop]:
        """Every drop that is open or sealing, in no order. One written a moment ago is among them."""

    def unsealed(self) -> Iterator[Drop]:
        """Every drop that is open, sealing or rejected, without a scan of the sealed ones."""

    def codes(self, route: str) -> dict[str, str]:
        """The codes of a route's drops by their names; nothing else of them is read."""

    def listed(self, route: str | None = None) -> Iterator[Drop]:
        """All drops, or a route's, by name."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs are wanted: those that have all these values. Empty or None is any. `since` is when they were made."""

    experiment: str = ""
    state: str = ""
    cluster: str = ""
    since: datetime | None = None


@dataclass(frozen=True)
class RunPage:
    runs: list[Run]
    token: str


class Runs(Protocol):
    """The runs' records: one row a run, found by name or newest first. A run stays `unsettled` until it is archived."""

    def insert(self, run: Run) -> bool:
        """Add the run. False, and nothing changes, if a run of this name was ever added.

        A call that died half-way is completed by the next one, which then returns False.
        """

    def get(self, name: str) -> Stored[Run]:
        """The run. Raises NotFound, naming it."""

    def update(self, run: Stored[Run], **changes: Any) -> Stored[Run]:
        """Merge these fields of Run into the row. Raises Changed unless it still has run.etag."""

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        """Up to `limit` runs, newest first, older than `before`. The number of requests doesn't grow with the table."""

    def page(self, wanted: RunFilter, limit: int, token: str = "") -> RunPage:
        """Up to `limit` runs that are wanted, newest first, and the token of the next page, '' after the last one.

        Costs a constant number of requests, however large the table and however few runs are wanted. So a page may have
        fewer than `limit` runs, even none, and yet a token. Runs' requests are left out. Raises Impossible for a
        token that is none.
        """

    def unsettled(self) -> Iterator[str]:
        """The names of all runs that aren't settled, in no order. A name may have no run yet."""

    def settle(self, name: str) -> None:
        """Take the run off the unsettled ones. Twice is once."""


class Queues(Protocol):
    """Storage queues with JSON messages. Delivery is at least once and in no order."""

    def send(self, queue: str, message: dict[str, Any], delay: float = 0.0) -> None:
        """Put a message, invisible for `delay` seconds (at most 7 days; more is cut to that)."""

    def counts(self, queues: Iterable[str]) -> dict[str, int]:
        """The approximate number of messages in each queue; 0 for one that does not exist."""

    def peek(self, queue: str, limit: int = 32) -> list[str]:
        """The first messages' texts, left where they are. Empty for a queue that does not exist."""


@dataclass(frozen=True)
class Place:
    """A folder in blob storage: `prefix` ends with '/' or is empty."""

    container: str
    prefix: str


@dataclass(frozen=True)
class Copy:
    """A blob to copy inside the storage account, and where to."""

    source: Blob
    container: str  # of the source
    to_container: str
    to_name: str


class Blobs(Protocol):
    """Blobs of the one storage account that drops, jobs and archives share."""

    def list(self, place: Place) -> Iterator[Blob]:
        """Every blob under the place, by name, page by page, with its metadata. Empty if the container isn't there."""

    def first(self, place: Place) -> Blob | None:
        """The first blob under the place by name, or None. One request, however many there are."""

    def folders(self, place: Place) -> Iterator[str]:
        """The names of the folders and single blobs right under the place, without listing what is in the folders."""

    def read(self, container: str, name: str, limit: int) -> bytes:
        """The blob. Raises NotFound, or BadInput if it is longer than `limit` bytes (nothing is read then)."""

    def lines(self, container: str, name: str) -> Iterator[str]:
        """The blob's lines, in bounded memory; none if it isn't there. A last line without its end counts too."""

    def read_from(self, container: str, name: str, offset: int, limit: int) -> bytes:
        """Up to `limit` bytes from `offset` on; empty at or past the end, or if the blob isn't there."""

    def tail(self, container: str, name: str, size: int) -> str:
        """The last `size` bytes as text; '' if the blob isn't there."""

    def write(self, container: str, name: str, data: bytes, content_type: str) -> Blob:
        """Write the blob whole, over what was there. Makes the container on first need."""

    def copy(self, copies: Iterable[Copy], concurrency: int = 16) -> Iterator[Blob]:
        """Copy on the server, and give each finished copy (as it now is) in no order.

        A copy carries its source's etag in metadata `source_etag`. One that is already there with this etag is not
        made again. A source that is gone raises NotFound. The bytes never come here.
        """

    def read_url(self, container: str, name: str, seconds: float) -> str:
        """A URL that reads this very blob and nothing else, without a credential, for so long. It need not be there."""

    def check(self) -> None:
        """Raise Unavailable unless the account answers."""


class Jobs(Protocol):
    """Azure ML jobs. A job's name is its run's name."""

    def submit(self, job: dict[str, Any]) -> JobStatus:
        """Put the job (Azure ML's command job schema, ids resolved) under its name.

        If a job of this name is there it is left as it is, and its status is returned. Raises BadInput with Azure ML's
        own words if the job can never run.
        """

    def problems(self, job: dict[str, Any]) -> list[Problem]:
        """What Azure ML's schema finds wrong with the job. Asks no service."""

    def status(self, name: str) -> JobStatus | None:
        """The job's status now, or None if there is no such job."""

    def cancel(self, name: str) -> None:
        """Ask for the end of the job. Nothing happens to one that has ended or isn't there."""

    def active(self) -> list[tuple[str, str]]:
        """(job, cluster) of the workspace's jobs that haven't ended, whoever sent them; the newest few hundred."""

    def logs(self, name: str) -> Place:
        """The folder that holds the job's `user_logs/` and `outputs/`."""

    def place(self, path: str) -> Place:
        """Where `azureml://datastores/<datastore>/paths/<folder>/` is. Raises NotFound for an unknown datastore."""

    def register_code(self, folder: str, digest: str) -> str:
        """The id of the code asset with the files of this folder. Registered once per digest, then only looked up."""

    def register_environment(self, file: str, digest: str) -> str:
        """The id of the environment that this YAML file describes. Registered once per digest, then only looked up."""

    def code_id(self, folder: str, digest: str) -> str:
        """The id that `register_code` gives, without registering anything."""

    def environment_id(self, file: str, digest: str) -> str:
        """The id that `register_environment` gives, without registering anything."""

    def check(self) -> None:
        """Raise Unavailable unless the workspace answers."""


class Clusters(Protocol):
    def list(self) -> list[Cluster]:
        """Every AmlCompute of the workspace, as it is now."""

    def to_zero(self, name: str) -> None:
        """Set min_instances to 0. Running jobs go on; nothing happens to one that is already there."""


class SweepLog(Protocol):
    """What the sweeps decided."""

    def record(self, decision: Decision) -> None:
        """Keep the decision as the cluster's latest, and in its history if action or code differ from the last."""

    def latest(self, cluster: str) -> Decision | None:
        """The cluster's latest decision, or None."""

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        """The cluster's decisions that changed something, newest first."""


class Events(Protocol):
    """Lifecycle events of our own, to whoever subscribes to the custom topic."""

    def publish(self, kind: str, subject: str, data: dict[str, Any], event_id: str, at: datetime) -> None:
        """Send one event. The same event_id twice is one event to a consumer that looks at ids."""
