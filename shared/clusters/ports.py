"""Azure ML's clusters, what the sweeps decided, who was promised nodes, and how many there were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from shared.clusters.lease_model import Lease
from shared.clusters.model import Cluster, Decision
from shared.clusters.samples import Sample
from shared.drops.ports import DropPorts
from shared.kernel.versioned import Stored


class Clusters(Protocol):
    def list(self) -> list[Cluster]:
        """Every AmlCompute and compute instance of the workspace, as it is now."""

    def scale(self, name: str, min_nodes: int | None = None, idle_seconds: float | None = None) -> None:
        """Change the minimum, or the time after which idle nodes go, and nothing else. Running jobs go on.

        Returns when Azure ML has accepted the change, which may take it minutes more. Nothing happens to a cluster that
        is so already. Raises Changed if someone else changed it meanwhile, NotFound for one that isn't there.
        """

    def stop(self, name: str) -> None:
        """Stop a compute instance. Nothing happens to one that is stopped."""


class SweepLog(Protocol):
    """What the sweeps decided."""

    def record(self, decision: Decision, last: Decision | None) -> None:
        """Store the decision as the cluster's latest, and in its history if action or code are not those of `last`."""

    def latest(self, cluster: str) -> Decision | None:
        """The cluster's latest decision, or None."""

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        """The cluster's decisions that changed something, newest first."""

    def claim_look(self, cluster: str, now: datetime, seconds: float) -> bool:
        """Claim the next look at this cluster. False if someone claimed it within so many seconds before."""


class Samples(Protocol):
    """How many nodes the clusters had, at the moments when someone looked."""

    def record(self, sample: Sample) -> None:
        """Keep the sample. Another of the same cluster and moment replaces it."""

    def clusters(self) -> list[str]:
        """The clusters that have samples, those too that are gone by now."""

    def first_day(self, cluster: str) -> datetime | None:
        """The beginning of the day of its oldest sample, None without any. Costs a request."""

    def between(self, cluster: str, since: datetime, until: datetime) -> Iterator[Sample]:
        """The cluster's samples with since <= at < until, oldest first. Costs a request a day."""


class Leases(Protocol):
    """Promises of warm nodes. The rows of those that are over stay, for what they cost."""

    def insert(self, lease: Lease) -> bool:
        """Add the lease. False, and nothing changes, if one of this id was ever added."""

    def get(self, lease_id: str) -> Stored[Lease]:
        """The lease. Raises NotFound, naming it."""

    def replace(self, lease: Lease, before: Stored[Lease]) -> Stored[Lease]:
        """Write it over. Raises Changed unless the row still has before.etag."""

    def open(self) -> list[Lease]:
        """Leases that nobody closed, oldest first; their time may be over."""

    def close(self, lease_id: str) -> None:
        """Close a lease whose time is over. A repeat does no harm."""

    def made_between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        """Those that were made at or after `since` and before `until`, to the second, oldest first."""


class Budgets(Protocol):
    """Whether a project has money left."""

    def exhausted(self, project: str) -> str | None:
        """Why nothing more may be spent on this project, as a sentence; None while something may."""


class NoBudgets:
    """No project has a budget."""

    def exhausted(self, _project: str) -> str | None:
        """None, for each project."""


class ClusterPorts(DropPorts, Protocol):
    """Those of drops, the clusters, and what is recorded of them."""

    @property
    def clusters(self) -> Clusters: ...
    @property
    def sweeps(self) -> SweepLog: ...
    @property
    def samples(self) -> Samples: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def budgets(self) -> Budgets: ...
