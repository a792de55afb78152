"""Find the needs for each cluster now (runs, anyone's jobs, incoming drops, leases), and whether the project may
spend.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from shared.clusters.decide import Need
from shared.clusters.keep_warm import keep_warm
from shared.clusters.lease_model import Lease
from shared.clusters.model import Cluster
from shared.clusters.ports import Budgets, ClusterPorts
from shared.drops.ports import Drops
from shared.jobs.route import Routes
from shared.runs.decide import is_over
from shared.runs.model import LIVE, Run, RunState

RECENT = 100  # newest runs read to find when each cluster was last used


@dataclass(frozen=True)
class ClustersInUse:
    """The use of all clusters, by cluster name."""

    busy: dict[str, str]
    expected: dict[str, str]
    last_used: dict[str, datetime]
    leases: tuple[Lease, ...]
    states: frozenset[RunState]  # states of the live runs


def use(ports: ClusterPorts) -> ClustersInUse:
    """Read the current needs for clusters. Drops are read first: a drop may become a run during the reading, and must
    not be missed.
    """
    expected = _expected(ports.drops, ports.routes)
    recent = ports.runs.newest(RECENT)
    for run in recent:  # in case a process crashed between writing the run's end and making its lease
        if is_over(run) and run.asked.keep_warm_seconds and run.jobs.job:
            keep_warm(ports, run)
    busy = {cluster: f"Job {job} is queued or running." for job, cluster in ports.jobs.active()}
    live = sorted(ports.runs.live(), key=lambda run: LIVE.index(run[2]))
    busy |= {cluster: f"Run {name} is {state}." for name, cluster, state in live}
    return ClustersInUse(
        busy, expected, _last_used(recent), tuple(ports.leases.open()), frozenset(state for _, _, state in live)
    )


def need(budgets: Budgets, cluster: Cluster, usage: ClustersInUse, warnings: Iterable[str] = ()) -> Need:
    """Return one cluster's use."""
    name = cluster.name
    leases = tuple(lease for lease in usage.leases if lease.cluster == name)
    over = budgets.exhausted(cluster.project) if cluster.project else None
    return Need(
        usage.busy.get(name), usage.expected.get(name), leases, over, usage.last_used.get(name), None, tuple(warnings)
    )


def _expected(drops: Drops, routes: Routes) -> dict[str, str]:
    """Return the possible clusters of an open drop: its route's clusters, including the choices of a job file."""
    words_by_cluster: dict[str, str] = {}
    for drop in drops.open():
        if (route := routes.get(drop.key.route)) and route.trains:
            words = f"Drop {drop.key} is {drop.state} since {drop.opened_at:%Y-%m-%d %H:%M} UTC and will train here."
            words_by_cluster |= dict.fromkeys(route.clusters, words) | {route.cluster: words}
    return words_by_cluster


def _last_used(runs: Iterable[Run]) -> dict[str, datetime]:
    """Return when the last of these runs ended on each cluster, because a job may start and end between two checks."""
    used: dict[str, datetime] = {}
    for run in runs:
        if is_over(run) and run.progress.history:
            used[run.asked.cluster] = max(
                run.progress.history[-1].at, used.get(run.asked.cluster, run.progress.history[-1].at)
            )
    return used
