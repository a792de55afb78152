"""Answer runs whether a cluster can run a job now."""

from __future__ import annotations

from dataclasses import dataclass

from shared.clusters.model import LOW_PRIORITY
from shared.clusters.ports import Clusters
from shared.clusters.waiting import refusal
from shared.kernel.suggest import did_you_mean, there_are
from shared.runs.ports import Reason


@dataclass(frozen=True)
class ClusterCapacity:
    """Implements shared.runs.ports.Capacity with the workspace's clusters in their current state."""

    clusters: Clusters

    def reasons(self, name: str, nodes: int) -> list[Reason]:
        """See shared.runs.ports.Capacity."""
        clusters = {cluster.name: cluster for cluster in self.clusters.list()}
        cluster = clusters.get(name)
        if cluster is None:
            words = (
                f"The workspace has no cluster {name!r}.{did_you_mean(name, clusters)} It has: {there_are(clusters)}."
            )
            return [Reason(code="unknown_cluster", message=words)]
        if blocker := refusal(cluster, nodes):
            return [Reason(code=blocker.code, message=blocker.why)]
        if nodes > (free := cluster.max_nodes - cluster.busy_nodes):
            words = f"{name} has {free} free nodes of {cluster.max_nodes}; the job would wait."
            return [Reason(code="cluster_busy", message=words)]
        return []

    def is_low_priority(self, name: str) -> bool:
        """See shared.runs.ports.Capacity."""
        return any(cluster.name == name and cluster.tier == LOW_PRIORITY for cluster in self.clusters.list())
