"""The current use of a running run's nodes, for the features that judge whether the run makes progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.runs.pulse import NodePulse
from shared.usage.model import FLOWS, Measurement, Metric, NodeUsage, together
from shared.usage.reading import GRAIN, usage_by_job

RECENT = 10  # samples
MOVED = (Metric.DISK_READ, Metric.DISK_WRITTEN, Metric.NETWORK_IN, Metric.NETWORK_OUT)


def node_pulses(ports: RunPorts, run: Run) -> list[NodePulse]:
    """Return the newest measurements of each node: a request for nodes, and one for GPUs, once a minute at most."""
    by_job = usage_by_job(ports, run)
    return list(pulses(together(by_job.values()), _last_jobs(by_job)))


def _last_jobs(by_job: Mapping[str, NodeUsage]) -> dict[str, str]:
    """Return the job that used each node last, by the nodes' names."""
    newest = {
        (each.points[-1].at, job): each.node for job, usage in by_job.items() for each in usage.series if each.points
    }
    return {node: job for (_, job), node in sorted(newest.items())}


def pulses(usage: NodeUsage, jobs: Mapping[str, str]) -> Iterator[NodePulse]:
    """Return the newest measurements of each node that was measured. `jobs` are the nodes' last jobs."""
    for node in usage.nodes():
        found = {metric: _of_node(usage, node, metric) for metric in Metric}
        times = [points[-1].at for points in found.values() if points]
        newest = max(times)
        yield NodePulse(
            node,
            newest,
            cores=tuple(point.value for point in found[Metric.CORES][-RECENT:]),
            cores_in_all=_last(found[Metric.CORES_IN_ALL]),
            gpu=tuple(point.value for point in found[Metric.GPU][-RECENT:]),
            moved=_moved([found[metric] for metric in MOVED]),
            memory=_last(found[Metric.MEMORY]),
            memory_in_all=_last(found[Metric.MEMORY_IN_ALL]),
            disk_free=_last(found[Metric.DISK_FREE]),
            disk_in_all=_sum(_last(found[Metric.DISK_FREE]), _last(found[Metric.DISK_USED])),
            job=jobs.get(node, ""),
        )


def _of_node(usage: NodeUsage, node: str, metric: Metric) -> list[Measurement]:
    """Return the points of one metric of a node: the average over its GPUs, or the sum over its other devices."""
    series = tuple(each for each in usage.of(metric) if each.node == node)
    return NodeUsage(series).by_node(metric).get(node, [])


def _last(points: Sequence[Measurement]) -> float | None:
    return points[-1].value if points else None


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _moved(metrics: Sequence[Sequence[Measurement]]) -> float | None:
    """Return the megabytes a second of the newest minute, of all metrics together."""
    assert set(MOVED) <= FLOWS
    amounts = [points[-1].value for points in metrics if points]
    return sum(amounts) / GRAIN.total_seconds() if amounts else None
