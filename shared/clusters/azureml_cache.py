"""Cached answers of Azure ML about clusters and their jobs, so that many questions cost one request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from weakref import WeakKeyDictionary

from shared.clusters.model import Cluster
from shared.clusters.ports import HasClusters
from shared.clusters.waiting import WAITING, Waiting, why_waiting
from shared.jobs.ports import HasJobs
from shared.kernel.errors import TrainyardError
from shared.kernel.has import HasClock
from shared.runs.model import SWEEP, Run
from shared.runs.progress.workloads import workload

KEPT_FOR = timedelta(seconds=5)


class Ports(HasClock, HasJobs, HasClusters, Protocol):
    """What is needed here from outside."""


@dataclass(frozen=True)
class Sight:
    at: datetime
    clusters: dict[str, Cluster]
    jobs: tuple[tuple[str, str], ...]  # (job, cluster) of those that have not ended, newest first
    error: str = ""


_kept: WeakKeyDictionary[object, Sight] = WeakKeyDictionary()


def sight(ports: Ports) -> Sight:
    """An answer of Azure ML, cached for seconds; returned stale if Azure ML is away."""
    last_sight = _kept.get(ports)
    if last_sight is None or ports.clock() - last_sight.at >= KEPT_FOR:
        last_sight = _kept[ports] = _look(ports)
    return last_sight


def waiting(ports: Ports, run: Run) -> Waiting | None:
    """Why this run has not started; None for one that has, or is over."""
    if run.progress.state not in WAITING or run.asked.kind == SWEEP:
        return None
    current_sight = sight(ports)
    if current_sight.error and run.jobs.job:
        return Waiting("no_answer", f"Azure ML does not say: {current_sight.error}")
    own = set(workload(run).live_jobs(run))
    ahead: list[str] = []
    for job, cluster in current_sight.jobs:
        if job in own:
            ahead = []  # those that come now were sent before it
        elif cluster == run.on_cluster:
            ahead.append(job)
    return why_waiting(run, current_sight.clusters.get(run.on_cluster), ahead[::-1])


def _look(ports: Ports) -> Sight:
    try:
        clusters = {cluster.name: cluster for cluster in ports.clusters.list()}
        return Sight(ports.clock(), clusters, tuple(ports.jobs.active()))
    except TrainyardError as exc:
        return Sight(ports.clock(), {}, (), str(exc))
