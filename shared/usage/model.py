"""The use of a run's nodes, minute by minute: samples by metric, node and device. Pure.

`NodeUsage` is the one value that the rest of Trainyard works with; shared/adapters/usage reads it from Azure Monitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from statistics import fmean
from typing import Any


class Metric(StrEnum):
    """A measured quantity of a node or of one of its devices. Each metric has one unit."""

    CPU = "cpu"  # percent of the node's processors
    CORES = "cores"  # processors in use
    CORES_IN_ALL = "cores_in_all"
    MEMORY = "memory"  # megabytes
    MEMORY_IN_ALL = "memory_in_all"
    DISK_USED = "disk_used"  # megabytes
    DISK_FREE = "disk_free"
    DISK_READ = "disk_read"  # megabytes in the sample's interval, as all metrics below with "in the interval"
    DISK_WRITTEN = "disk_written"
    NETWORK_IN = "network_in"
    NETWORK_OUT = "network_out"
    STORAGE_FAILURES = "storage_failures"  # failed calls of Blob Storage in the interval
    GPU = "gpu"  # percent of a GPU
    GPU_MEMORY = "gpu_memory"  # megabytes
    GPU_MEMORY_IN_ALL = "gpu_memory_in_all"
    GPU_ENERGY = "gpu_energy"  # joules in the interval


FLOWS = frozenset(
    {
        *(Metric.DISK_READ, Metric.DISK_WRITTEN, Metric.NETWORK_IN, Metric.NETWORK_OUT),
        *(Metric.STORAGE_FAILURES, Metric.GPU_ENERGY),
    }
)  # amounts per interval, which add up over time; all other metrics are levels
OF_GPUS = frozenset({Metric.GPU, Metric.GPU_MEMORY, Metric.GPU_MEMORY_IN_ALL, Metric.GPU_ENERGY})


@dataclass(frozen=True)
class Measurement:
    """One sample: the interval's start, its amount (of a flow) or average (of a level), and its highest value."""

    at: datetime
    value: float
    peak: float


@dataclass(frozen=True)
class NodeSeries:
    """The points of one metric of one node, oldest first; of one of its GPUs if `device` is not empty."""

    metric: Metric
    node: str
    device: str = ""
    points: tuple[Measurement, ...] = ()


@dataclass(frozen=True)
class NodeUsage:
    """The use of a run's nodes. Without series, nothing is known: the run was too short, or has not begun."""

    series: tuple[NodeSeries, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.series)

    def of(self, metric: Metric) -> list[NodeSeries]:
        """Return the series of one metric."""
        return [each for each in self.series if each.metric is metric]

    def nodes(self) -> list[str]:
        """Return the nodes' names, in the order in which Azure Monitor named them."""
        return list(dict.fromkeys(each.node for each in self.series))

    def by_node(self, metric: Metric) -> dict[str, list[Measurement]]:
        """Return the points of a metric by node. GPUs of one node are averaged; their amounts are added."""
        found: dict[str, dict[datetime, list[Measurement]]] = {}
        for each in self.of(metric):
            of_node = found.setdefault(each.node, {})
            for point in each.points:
                of_node.setdefault(point.at, []).append(point)
        return {
            node: [_together(metric, points) for _, points in sorted(times.items())] for node, times in found.items()
        }

    def average(self, metric: Metric) -> float | None:
        """Return the mean of a metric over nodes, devices and time; None if it was not measured."""
        values = [point.value for each in self.of(metric) for point in each.points]
        return fmean(values) if values else None

    def peak(self, metric: Metric) -> float | None:
        """Return the highest value that any node or device reached; None if the metric was not measured."""
        return max((point.peak for each in self.of(metric) for point in each.points), default=None)

    def total(self, metric: Metric) -> float | None:
        """Return the sum of a flow over nodes, devices and time; None if it was not measured."""
        values = [point.value for each in self.of(metric) for point in each.points]
        return sum(values) if values else None

    def last_at(self) -> datetime | None:
        """Return the start of the newest sample; None without samples."""
        return max((each.points[-1].at for each in self.series if each.points), default=None)

    def between(self, begin: datetime, end: datetime) -> NodeUsage:
        """Return the samples whose intervals begin from `begin` on and before `end`."""
        kept = (
            NodeSeries(each.metric, each.node, each.device, tuple(p for p in each.points if begin <= p.at < end))
            for each in self.series
        )
        return NodeUsage(tuple(each for each in kept if each.points))


def _together(metric: Metric, points: list[Measurement]) -> Measurement:
    if len(points) == 1:
        return points[0]
    value = sum(point.value for point in points) if metric in FLOWS else fmean(point.value for point in points)
    return Measurement(points[0].at, value, max(point.peak for point in points))


@dataclass(frozen=True)
class UsageSummary:
    """The usage of a run in a few numbers, for its row, its manifest and lists. None: not measured.

    `cpu` and `gpu` are percent, averaged over nodes and time. Memory is in megabytes: the highest use of any node (or
    GPU), and the capacity of a node (or GPU). `gpus` counts the GPUs of one node. `until` is the time of the last
    sample.
    """

    nodes: int = 0
    cpu: float | None = None
    cores: float | None = None  # the highest number of processors that a node used
    cores_in_all: float | None = None
    memory: float | None = None
    memory_in_all: float | None = None
    gpus: int = 0
    gpu: float | None = None
    gpu_memory: float | None = None
    gpu_memory_in_all: float | None = None
    gpu_energy: float | None = None  # joules of all GPUs together
    until: datetime | None = None


def summary(usage: NodeUsage) -> UsageSummary | None:
    """Return the usage in a few numbers; None if nothing was measured."""
    if not usage:
        return None
    devices: dict[str, set[str]] = {}
    for each in usage.of(Metric.GPU):
        devices.setdefault(each.node, set()).add(each.device)
    return UsageSummary(
        nodes=len(usage.nodes()),
        cpu=usage.average(Metric.CPU),
        cores=usage.peak(Metric.CORES),
        cores_in_all=usage.peak(Metric.CORES_IN_ALL),
        memory=usage.peak(Metric.MEMORY),
        memory_in_all=usage.peak(Metric.MEMORY_IN_ALL),
        gpus=max((len(names) for names in devices.values()), default=0),
        gpu=usage.average(Metric.GPU),
        gpu_memory=usage.peak(Metric.GPU_MEMORY),
        gpu_memory_in_all=usage.peak(Metric.GPU_MEMORY_IN_ALL),
        gpu_energy=usage.total(Metric.GPU_ENERGY),
        until=usage.last_at(),
    )


Row = dict[str, Any]


def rows(usage: NodeUsage) -> list[Row]:
    """Return the usage as rows, oldest first: the time in Unix seconds, the node, the device ('' for the node itself),
    and [value, highest value] of each metric. `of_rows` reads them.
    """
    found: dict[tuple[float, str, str], Row] = {}
    for each in usage.series:
        for point in each.points:
            key = (point.at.timestamp(), each.node, each.device)
            row = found.setdefault(key, {"time": key[0], "node": key[1], "device": key[2]})
            row[each.metric] = [round(point.value, 3), round(point.peak, 3)]
    return [row for _, row in sorted(found.items(), key=lambda item: item[0])]


def of_rows(listed: Iterable[Mapping[str, Any]]) -> NodeUsage:
    """Return the usage of rows that `rows` made. Metrics that this version does not know are left out.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    names = set(Metric)
    found: dict[tuple[Metric, str, str], list[Measurement]] = {}
    for row in listed:
        at = datetime.fromtimestamp(float(row["time"]), UTC)
        for name in names & row.keys():
            value, peak = row[name]
            key = (Metric(name), str(row["node"]), str(row["device"]))
            found.setdefault(key, []).append(Measurement(at, float(value), float(peak)))
    return NodeUsage(tuple(NodeSeries(*key, tuple(points)) for key, points in sorted(found.items(), key=_place)))


def _place(item: tuple[tuple[Metric, str, str], list[Measurement]]) -> tuple[int, str, str]:
    (metric, node, device), _ = item
    return list(Metric).index(metric), node, device


def together(usages: Iterable[NodeUsage]) -> NodeUsage:
    """Return the usage of several jobs as one: nodes that two jobs used one after the other have one series."""
    found: dict[tuple[Metric, str, str], list[Measurement]] = {}
    for usage in usages:
        for each in usage.series:
            found.setdefault((each.metric, each.node, each.device), []).extend(each.points)
    series = (NodeSeries(*key, tuple(sorted(points, key=lambda point: point.at))) for key, points in found.items())
    return NodeUsage(tuple(series))
