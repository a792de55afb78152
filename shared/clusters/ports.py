"""Azure ML's clusters, and what the sweeps decided."""

from __future__ import annotations

from typing import Protocol

from shared.clusters.model import Cluster, Decision


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
