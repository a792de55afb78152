"""Azure ML's clusters, what the sweeps decided, and how many nodes there were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from shared.clusters.model import Cluster, Decision
from shared.clusters.samples import Sample


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


class Samples(Protocol):
    """How many nodes the clusters had, at the moments when someone looked."""

    def record(self, sample: Sample) -> None:
        """Keep the sample. Another of the same cluster and moment replaces it."""

    def clusters(self) -> list[str]:
        """The clusters that have samples, those too that are gone by now."""

    def between(self, cluster: str, since: datetime, until: datetime) -> Iterator[Sample]:
        """The cluster's samples with since <= at < until, oldest first. Costs a request a day."""
