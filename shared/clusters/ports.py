"""Ports for Azure ML's clusters, decisions about clusters, leases, and node counts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from shared.clusters.lease_model import Lease
from shared.clusters.model import Cluster, Decision, NodeCounts
from shared.clusters.samples import Sample
from shared.drops.ports import DropPorts
from shared.kernel.versioned import Stored


class Clusters(Protocol):
    def list(self) -> list[Cluster]:
        """Return every AmlCompute and compute instance of the workspace in its current state."""

    def node_counts(self, name: str, since: datetime, until: datetime) -> tuple[NodeCounts, ...]:
        """Return the workspace's own counts of a cluster's nodes, oldest first.

        There is one for each minute, and for each five minutes of more than a day. Minutes without a count are missing,
        and so are the last minutes, because counts come late. Empty for an unknown cluster. Costs one request.
        """

    def scale(self, name: str, min_nodes: int | None = None, idle_seconds: float | None = None) -> None:
        """Change only the minimum, or the time after which idle nodes are released. Running jobs continue.

        Returns when Azure ML has accepted the change, which can take minutes more to happen. Does nothing if the
        cluster already has these values. Raises Changed if someone else changed the cluster meanwhile, NotFound for an
        unknown cluster.
        """

    def stop(self, name: str) -> None:
        """Stop a compute instance. Does nothing if the instance is stopped."""


class DecisionLog(Protocol):
    """The decisions about clusters."""

    def record(self, decision: Decision, last: Decision | None) -> None:
        """Store the decision as the cluster's latest. Add it to the history if its action or code differs from
        `last`.
        """

    def latest(self, cluster: str) -> Decision | None:
        """Return the cluster's latest decision, or None."""

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        """Return the cluster's decisions with an effect, newest first."""

    def claim_check(self, cluster: str, now: datetime, seconds: float) -> bool:
        """Claim the next check of this cluster. Return False if one was claimed less than `seconds` ago."""


class Samples(Protocol):
    """Node counts of the clusters, at the moments of the checks."""

    def record(self, sample: Sample) -> None:
        """Store the sample. A stored sample of this cluster and moment is replaced."""

    def clusters(self) -> list[str]:
        """Return the clusters with samples, including deleted clusters."""

    def first_day(self, cluster: str) -> datetime | None:
        """Return the start of the day of the cluster's oldest sample, None without samples. Costs one request."""

    def between(self, cluster: str, since: datetime, until: datetime) -> Iterator[Sample]:
        """Yield the cluster's samples with since <= at < until, oldest first. Costs one request per day."""


class Leases(Protocol):
    """Promises of warm nodes. The rows of ended leases stay, to explain costs."""

    def insert(self, lease: Lease) -> bool:
        """Insert the lease. Return False, and change nothing, if a lease with this id was ever inserted."""

    def get(self, lease_id: str) -> Stored[Lease]:
        """Return the lease. Raises NotFound with the lease's id."""

    def replace(self, lease: Lease, before: Stored[Lease]) -> Stored[Lease]:
        """Overwrite the lease. Raises Changed unless the row still has before.etag."""

    def open(self) -> list[Lease]:
        """Return the leases that are not closed, oldest first, even if their time is over."""

    def close(self, lease_id: str) -> None:
        """Close a lease whose time is over. A repeat does no harm."""

    def made_between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        """Yield the leases made at or after `since` and before `until`, to the second, oldest first."""


class Budgets(Protocol):
    """Whether a project has money left."""

    def exhausted(self, project: str) -> str | None:
        """Return why this project may spend nothing more, as a sentence; None while it may."""


class NoBudgets:
    """No project has a budget."""

    def exhausted(self, _project: str) -> str | None:
        """Return None for each project."""


class ClusterPorts(DropPorts, Protocol):
    """The ports of drops and clusters, and of the records about clusters."""

    @property
    def clusters(self) -> Clusters: ...
    @property
    def decisions(self) -> DecisionLog: ...
    @property
    def samples(self) -> Samples: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def budgets(self) -> Budgets: ...
