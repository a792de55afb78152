"""Azure Monitor's measurements of the workspace's jobs, over plain REST.

Names and dimensions: learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning-reference.
The request: Azure/azure-rest-api-specs, Microsoft.Insights/stable/2024-02-01/metrics_API.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.adapters.azureml.workspace import connect
from shared.kernel.settings import Workspace
from shared.usage.model import FLOWS, Measurement, Metric, NodeSeries, NodeUsage
from shared.usage.ports import MOST_JOBS

_MEGABYTE, _MILLI = 1.0, 0.001
# Azure's name: our metric, and the factor from Azure's unit to ours. A request takes at most 20 names.
_OF_NODES = {
    "CpuUtilizationPercentage": (Metric.CPU, 1.0),
    "CpuUtilizationMillicores": (Metric.CORES, _MILLI),
    "CpuCapacityMillicores": (Metric.CORES_IN_ALL, _MILLI),
    "CpuMemoryUtilizationMegabytes": (Metric.MEMORY, _MEGABYTE),
    "CpuMemoryCapacityMegabytes": (Metric.MEMORY_IN_ALL, _MEGABYTE),
    "DiskUsedMegabytes": (Metric.DISK_USED, _MEGABYTE),
    "DiskAvailMegabytes": (Metric.DISK_FREE, _MEGABYTE),
    "DiskReadMegabytes": (Metric.DISK_READ, _MEGABYTE),
    "DiskWriteMegabytes": (Metric.DISK_WRITTEN, _MEGABYTE),
    "NetworkInputMegabytes": (Metric.NETWORK_IN, _MEGABYTE),
    "NetworkOutputMegabytes": (Metric.NETWORK_OUT, _MEGABYTE),
    "StorageAPIFailureCount": (Metric.STORAGE_FAILURES, 1.0),
}
_OF_GPUS = {
    "GpuUtilizationPercentage": (Metric.GPU, 1.0),
    "GpuMemoryUtilizationMegabytes": (Metric.GPU_MEMORY, _MEGABYTE),
    "GpuMemoryCapacityMegabytes": (Metric.GPU_MEMORY_IN_ALL, _MEGABYTE),
    "GpuEnergyJoules": (Metric.GPU_ENERGY, 1.0),
}
_MOST_SERIES = 1000  # of each metric; the service returns ten if a request does not say how many
# The interval of the points, by the longest time for which a request asks: some hundred points per series.
_INTERVALS = ((timedelta(hours=8), "PT1M"), (timedelta(days=2), "PT5M"), (timedelta(days=6), "PT15M"))
_LONGEST_INTERVAL = "PT1H"

Json = dict[str, Any]


class AzureMonitor:
    """See shared.usage.ports.NodeMetrics."""

    def __init__(self, workspace: Workspace) -> None:
        self._connection = connect(workspace)

    def nodes(self, jobs: Sequence[str], since: datetime, until: datetime) -> dict[str, NodeUsage]:
        return self._ask(_OF_NODES, jobs, (since, until), "InstanceId eq '*'")

    def gpus(self, jobs: Sequence[str], since: datetime, until: datetime) -> dict[str, NodeUsage]:
        return self._ask(_OF_GPUS, jobs, (since, until), "InstanceId eq '*' and DeviceId eq '*'")

    def _ask(
        self,
        metrics: Mapping[str, tuple[Metric, float]],
        jobs: Sequence[str],
        span: tuple[datetime, datetime],
        dimensions: str,
    ) -> dict[str, NodeUsage]:
        if not jobs or span[0] >= span[1]:
            return {}
        of_jobs = " or ".join(f"RunId eq '{job}'" for job in jobs[:MOST_JOBS])  # names of jobs have no quotes
        answer = self._connection.arm.metrics(
            {
                "metricnames": ",".join(metrics),
                "timespan": "/".join(f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for at in span),
                "interval": _interval(span[1] - span[0]),
                "aggregation": "average,maximum,total",
                "$filter": f"{of_jobs} and {dimensions}",
                "top": str(_MOST_SERIES),
            }
        )
        return _by_job(metrics, answer)


def _interval(span: timedelta) -> str:
    return next((interval for longest, interval in _INTERVALS if span <= longest), _LONGEST_INTERVAL)


def _by_job(metrics: Mapping[str, tuple[Metric, float]], answer: Json) -> dict[str, NodeUsage]:
    found: dict[str, list[NodeSeries]] = {}
    for value in answer.get("value", []):
        known = metrics.get(value["name"]["value"])
        for series in value.get("timeseries", []) if known else ():
            about = {each["name"]["value"].lower(): each["value"] for each in series.get("metadatavalues", [])}
            points = tuple(_points(*known, series.get("data", []))) if known else ()
            if known and points:
                each = NodeSeries(known[0], about.get("instanceid", ""), about.get("deviceid", ""), points)
                found.setdefault(about.get("runid", ""), []).append(each)
    return {job: NodeUsage(tuple(series)) for job, series in found.items()}


def _points(metric: Metric, factor: float, data: list[Json]) -> list[Measurement]:
    """Return the points that have values. Intervals in which nothing was measured have only a time."""
    value = "total" if metric in FLOWS else "average"
    return [
        Measurement(datetime.fromisoformat(each["timeStamp"]), each[value] * factor, each["maximum"] * factor)
        for each in data
        if each.get(value) is not None and each.get("maximum") is not None
    ]
