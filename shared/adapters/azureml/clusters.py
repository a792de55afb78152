"""The workspace's clusters, over plain REST.

MLClient needs one request per cluster to list node counts. To change a cluster, MLClient rewrites the whole resource
and loses the fields that its classes lack. REST needs one request for either task.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.adapters.azureml.failures import allocation_errors
from shared.adapters.azureml.workspace import connect
from shared.clusters.model import INSTANCE, Cluster, NodeCounts
from shared.kernel.errors import Changed
from shared.kernel.settings import Workspace

_TIERS = {"lowpriority": "low_priority", "dedicated": "dedicated"}  # the names in the YAML schema of clusters
_STATES = ("running", "idle", "preparing", "leaving", "unusable")  # states that cost money; a preempted node is gone
_OFF = frozenset(
    {"Stopped", "Stopping", "Deleting", "CreateFailed"}
)  # states in which a compute instance costs no node
# Azure Monitor's metrics of nodes, which have the dimensions Scenario and ClusterName, and our states.
_COUNTED = {
    "Active Nodes": "running",
    "Idle Nodes": "idle",
    "Leaving Nodes": "leaving",
    "Unusable Nodes": "unusable",
}
_DEFAULT_IDLE_SECONDS = 120.0  # Azure ML's documented default


class AzureMLClusters:
    def __init__(self, workspace: Workspace) -> None:
        self._connection = connect(workspace)

    def list(self) -> list[Cluster]:
        computes = self._connection.arm.items("computes")
        found = [
            _KINDS[kind](resource)
            for resource in computes
            if (kind := resource["properties"].get("computeType")) in _KINDS
        ]
        self._connection.vm_sizes.update({cluster.name: cluster.vm_size for cluster in found})
        return found

    def node_counts(self, name: str, since: datetime, until: datetime) -> tuple[NodeCounts, ...]:
        answer = self._connection.arm.metrics(
            {
                "metricnames": ",".join(_COUNTED),
                "timespan": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}/{until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "interval": "PT1M" if until - since <= timedelta(days=1) else "PT5M",
                "aggregation": "average",
                "$filter": f"ClusterName eq '{name}'",
            }
        )
        by_time: dict[str, dict[str, int]] = {}
        for metric in answer.get("value", []):
            state = _COUNTED[metric["name"]["value"]]
            for point in (point for series in metric.get("timeseries", []) for point in series.get("data", [])):
                if point.get("average") is not None:
                    by_time.setdefault(point["timeStamp"], {})[state] = round(point["average"])
        return tuple(NodeCounts(datetime.fromisoformat(at), **states) for at, states in sorted(by_time.items()))

    def scale(self, name: str, min_nodes: int | None = None, idle_seconds: float | None = None) -> None:
        arm, seen = self._connection.arm, None
        while True:
            resource, etag = arm.get_with_etag(f"computes/{name}")
            settings = resource["properties"]["properties"]["scaleSettings"]
            if seen not in (None, settings):
                raise Changed(f"Someone else has just changed cluster {name}, so this change was not made.")
            if (new_settings := _scaled(settings, min_nodes, idle_seconds)) == settings:
                return
            try:
                arm.patch(f"computes/{name}", {"properties": {"properties": {"scaleSettings": new_settings}}}, etag)
            except Changed:
                if seen is not None or not etag:
                    raise
                seen = settings  # an etag may also cover the nodes' states: retry if only they changed
            else:
                return

    def stop(self, name: str) -> None:
        resource = self._connection.arm.get(f"computes/{name}")
        if not _instance(resource).nodes:
            return
        self._connection.arm.post(f"computes/{name}/stop", {})


def _scaled(settings: dict[str, Any], min_nodes: int | None, idle_seconds: float | None) -> dict[str, Any]:
    """Return the scale settings with a new minimum or idle time. Unknown settings stay."""
    new_settings = dict(settings)
    if min_nodes is not None and min_nodes != (settings.get("minNodeCount") or 0):
        new_settings["minNodeCount"] = min_nodes
    if idle_seconds is not None and round(idle_seconds) != _seconds(settings.get("nodeIdleTimeBeforeScaleDown") or ""):
        new_settings["nodeIdleTimeBeforeScaleDown"] = f"PT{round(idle_seconds)}S"
    return new_settings


def _cluster(resource: dict[str, Any]) -> Cluster:
    compute = resource["properties"].get("properties") or {}
    scale, counts = compute.get("scaleSettings") or {}, compute.get("nodeStateCounts") or {}
    by_state = {state: int(counts.get(f"{state}NodeCount") or 0) for state in _STATES}
    nodes: Any = {f"{state}_nodes": number for state, number in by_state.items()}
    return Cluster(
        name=resource["name"],
        min_nodes=int(scale.get("minNodeCount") or 0),
        max_nodes=int(scale.get("maxNodeCount") or 0),
        idle_seconds=_seconds(scale.get("nodeIdleTimeBeforeScaleDown") or ""),
        nodes=sum(by_state.values()),
        busy_nodes=by_state["preparing"] + by_state["running"],
        tier=_TIERS.get(str(compute.get("vmPriority") or "").lower(), ""),
        vm_size=compute.get("vmSize") or "",
        target_nodes=int(compute.get("targetNodeCount") or 0),
        **nodes,
        allocation=str(compute.get("allocationState") or ""),
        allocation_since=_time(compute.get("allocationStateTransitionTime")),
        errors=(
            *allocation_errors(compute.get("errors")),
            *allocation_errors(resource["properties"].get("provisioningErrors")),
        ),
        **_tags(resource),
    )


def _instance(resource: dict[str, Any]) -> Cluster:
    """Return a compute instance as a cluster of one node. A running compute instance costs money."""
    compute = resource["properties"].get("properties") or {}
    on = 0 if str(compute.get("state") or "") in _OFF else 1
    return Cluster(
        name=resource["name"],
        min_nodes=0,
        max_nodes=1,
        idle_seconds=_seconds(compute.get("idleTimeBeforeShutdown") or ""),
        nodes=on,
        tier="dedicated",
        vm_size=compute.get("vmSize") or "",
        target_nodes=on,
        running_nodes=on,
        allocation=str(compute.get("state") or ""),
        allocation_since=_time((compute.get("lastOperation") or {}).get("operationTime")),
        errors=allocation_errors(compute.get("errors")),
        kind=INSTANCE,
        **_tags(resource),
    )


_KINDS = {"AmlCompute": _cluster, "ComputeInstance": _instance}


def _tags(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the administrator's settings in the compute's tags, which `trainyard clusters apply` writes."""
    tags = resource.get("tags") or {}
    return {
        "pin": str(tags.get("trainyard.pin") or ""),
        "project": str(tags.get("trainyard.project") or ""),
        "idle_auto": tags.get("trainyard.idle") == "auto",
    }


def _time(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text or ""))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _seconds(duration: str) -> float:
    """Return an ISO 8601 duration such as PT2M30S in seconds."""
    import isodate

    try:
        return float(isodate.parse_duration(duration).total_seconds())
    except isodate.ISO8601Error:
        return _DEFAULT_IDLE_SECONDS
