"""Learn idle times from past gaps, for clusters whose tag `trainyard.idle` is auto."""

from __future__ import annotations

import logging

from shared.clusters.gaps import gaps_of, start_seconds
from shared.clusters.idle import auto_idle_seconds
from shared.clusters.model import Cluster
from shared.clusters.ports import ClusterPorts, Clusters
from shared.kernel.errors import TrainyardError
from shared.kernel.settings import Rules
from shared.runs.model import Run

log = logging.getLogger(__name__)

RUNS_READ = 1000  # across all clusters; costs one request
LEAST_SECONDS = 15.0  # a run that is preempted asks for its nodes again within seconds
WORTH_A_CHANGE = 0.1  # share of the cluster's idle time; a smaller change is not made


def set_idle_times(ports: ClusterPorts) -> dict[str, float]:
    """Set the idle time of each listed cluster from its gaps, for Azure ML and for the scaling timer alike.

    A cluster that refuses does not stop the others. Return the chosen seconds by cluster.
    """
    auto = [cluster for cluster in ports.clusters.list() if cluster.idle_auto]
    runs = list(reversed(ports.runs.newest(RUNS_READ))) if auto else []
    now = ports.clock()
    by_cluster: dict[str, list[Run]] = {cluster.name: [] for cluster in auto}
    for run in runs:
        by_cluster.setdefault(run.asked.cluster, []).append(run)
    gaps = {name: gaps_of(its, now) for name, its in by_cluster.items()}
    chosen = {}
    for cluster in auto:
        others = [gap for name, its in gaps.items() if name != cluster.name for gap in its]
        start = start_seconds(by_cluster[cluster.name], now)
        learnt = auto_idle_seconds(gaps[cluster.name], start, others, cluster.name)
        seconds = round(max(LEAST_SECONDS, learnt))
        chosen[cluster.name] = float(seconds)
        _set(ports.clusters, ports.rules, cluster, float(seconds))
    return chosen


def _set(clusters: Clusters, rules: Rules, cluster: Cluster, seconds: float) -> None:
    if abs(seconds - cluster.idle_seconds) <= WORTH_A_CHANGE * cluster.idle_seconds:
        return
    log.info("cluster %s: idle time %g s instead of %g s", cluster.name, seconds, cluster.idle_seconds)
    if rules.dry_run:
        return
    try:
        clusters.scale(cluster.name, idle_seconds=seconds)
    except TrainyardError as exc:
        log.warning("cluster %s: its idle time stays: %s", cluster.name, exc)
