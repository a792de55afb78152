"""The workspace's clusters, over plain REST.

MLClient lists no node counts without a request a cluster, and changes a cluster only by writing all of it again from
what its classes can hold, so that what they don't know is lost. REST has both in one request each.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from shared.adapters.translation import without_secrets
from shared.adapters.workspace import connect
from shared.clusters.model import Cluster
from shared.kernel.settings import Workspace

_TIERS = {"lowpriority": "low_priority", "dedicated": "dedicated"}  # as the YAML schema of clusters names them
_STATES = ("running", "idle", "preparing", "leaving", "unusable")  # that cost money: a preempted node is gone
_WORDS_LIMIT = 1000  # characters of one error
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
    by_state = {state: int(counts.get(f"{state}NodeCount") or 0) for state in _STATES}
    return Cluster(
        name=found["name"],
        min_nodes=int(scale.get("minNodeCount") or 0),
        max_nodes=int(scale.get("maxNodeCount") or 0),
        idle_seconds=_seconds(scale.get("nodeIdleTimeBeforeScaleDown") or ""),
        nodes=sum(by_state.values()),
        busy_nodes=by_state["preparing"] + by_state["running"],
        tier=_TIERS.get(str(compute.get("vmPriority") or "").lower(), ""),
        vm_size=compute.get("vmSize") or "",
        target_nodes=int(compute.get("targetNodeCount") or 0),
        **{f"{state}_nodes": number for state, number in by_state.items()},
        allocation=str(compute.get("allocationState") or ""),
        allocation_since=_time(compute.get("allocationStateTransitionTime")),
        errors=tuple(_words(compute.get("errors")) + _words(found["properties"].get("provisioningErrors"))),
    )


def _words(errors: Any) -> list[str]:
    """Azure ML's sentences out of its error objects, each with its code."""
    found = [error.get("error") or error for error in errors or [] if isinstance(error, dict)]
    pairs = [(str(error.get("code") or ""), str(error.get("message") or "")) for error in found]
    return [without_secrets(f"{code}: {message}".strip(": "))[:_WORDS_LIMIT] for code, message in pairs]


def _time(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text or ""))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _seconds(duration: str) -> float:
    """An ISO 8601 duration such as PT2M30S in seconds."""
    import isodate

    try:
        return float(isodate.parse_duration(duration).total_seconds())
    except isodate.ISO8601Error:
        return _DEFAULT_IDLE_SECONDS
