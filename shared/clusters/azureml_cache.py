"""The clusters and the jobs on them as Azure ML told them a moment ago, so that many questions cost one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from shared.clusters.model import Cluster
from shared.clusters.waiting import WAITING, Waiting, why_waiting
from shared.kernel.errors import TrainyardError
from shared.runs.model import Run
from shared.runs.progress.workloads import workload
from shared.system import System

KEPT_FOR = timedelta(seconds=5)


@dataclass(frozen=True)
class Sight:
    at: datetime
    clusters: dict[str, Cluster]
    jobs: tuple[tuple[str, str], ...]  # (job, cluster) of those that have not ended, newest first
    error: str = ""


_kept: WeakKeyDictionary[System, Sight] = WeakKeyDictionary()


def sight(system: System) -> Sight:
    """What Azure ML told within the last seconds; if it does not answer, that."""
    known = _kept.get(system)
    if known is None or system.clock() - known.at >= KEPT_FOR:
        known = _kept[system] = _look(system)
    return known


def waiting(system: System, run: Run) -> Waiting | None:
    """Why this run has not started; None for one that has, or is over."""
    if run.state not in WAITING:
        return None
    known = sight(system)
    if known.error and run.job:
        return Waiting("no_answer", f"Azure ML does not say: {known.error}")
    own = set(workload(run).live_jobs(run))
    ahead: list[str] = []
    for job, cluster in known.jobs:
        if job in own:
            ahead = []  # those that come now were sent before it
        elif cluster == run.cluster:
            ahead.append(job)
    return why_waiting(run, known.clusters.get(run.cluster), ahead[::-1])


def _look(system: System) -> Sight:
    try:
        clusters = {cluster.name: cluster for cluster in system.clusters.list()}
        return Sight(system.clock(), clusters, tuple(system.jobs.active()))
    except TrainyardError as exc:
        return Sight(system.clock(), {}, (), str(exc))
