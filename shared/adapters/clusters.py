"""The workspace's clusters, over plain REST.

MLClient lists no node counts without a request a cluster, and changes a cluster only by writing all of it again from
what its classes can hold, so that what they don't know is lost. REST has both in one request each.
"""

from __future__ import annotations

from typing import Any

from shared.adapters.workspace import connect
from shared.clusters.model import Cluster
from shared.kernel.settings import Workspace

_TIERS = {"lowpriority": "low_priority", "dedicated": "dedicated"}  # as the YAML schema of clusters names them
_DEFAULT_IDLE_SECONDS = 120.0  # of a cluster that says nothing, as Azure ML documents it


class AzureMLClusters:
    def __init__(self, workspace: Workspace) -> None:
        self._connection = connect(workspace)

    def list(self) -> list[Cluster]:
        computes = self._connection.arm.items("computes")
        return [_cluster(found) for found in computes if found["properties"].get("computeType") == "AmlCompute"]

    def to_zero(self, name: str) -> None:
        arm = self._connection.arm
        settings = arm.get(f"computes/{name}")["properties"]["properties"]["scaleSettings"]
        if settings.get("minNodeCount", 0) > 0:
            change = {"scaleSettings": {**settings, "minNodeCount": 0}}
            arm.patch_and_wait(f"computes/{name}", {"properties": {"properties": change}})


def _cluster(found: dict[str, Any]) -> Cluster:
    compute = found["properties"].get("properties") or {}
    scale, counts = compute.get("scaleSettings") or {}, compute.get("nodeStateCounts") or {}
    return Cluster(
        name=found["name"],
        min_nodes=int(scale.get("minNodeCount") or 0),
        max_nodes=int(scale.get("maxNodeCount") or 0),
        idle_seconds=_seconds(scale.get("nodeIdleTimeBeforeScaleDown") or ""),
        # All that cost money: a preempted node is gone, the others are there whatever they do.
        nodes=sum(int(n or 0) for state, n in counts.items() if state != "preemptedNodeCount"),
        busy_nodes=int(counts.get("preparingNodeCount") or 0) + int(counts.get("runningNodeCount") or 0),
        tier=_TIERS.get(str(compute.get("vmPriority") or "").lower(), ""),
        vm_size=compute.get("vmSize") or "",
    )


def _seconds(duration: str) -> float:
    """An ISO 8601 duration such as PT2M30S in seconds."""
    import isodate

    try:
        return float(isodate.parse_duration(duration).total_seconds())
    except isodate.ISO8601Error:
        return _DEFAULT_IDLE_SECONDS
