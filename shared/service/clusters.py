"""The sweep: one decision for every cluster, keep or to zero, with its reason."""

from __future__ import annotations

import logging

from shared import policy
from shared.errors import NotFound
from shared.model import Cluster, Decision
from shared.service.announce import announce
from shared.system import System

log = logging.getLogger(__name__)


def sweep(system: System) -> list[Decision]:
    """Look at every cluster once, bring idle ones to zero, and record each decision."""
    clusters = system.clusters.list()
    needs = _needs(system) if clusters else {}
    return [_decide(system, cluster, needs.get(cluster.name)) for cluster in clusters]


def _decide(system: System, cluster: Cluster, need: str | None) -> Decision:
    decision = policy.judge_cluster(cluster, need, system.sweeps.latest(cluster.name), system.clock())
    if decision.action == "to-zero":
        system.clusters.to_zero(cluster.name)
        log.info("cluster %s: to zero. %s", cluster.name, decision.why)
        announce(system, "ClusterAtZero", f"{cluster.name}/{decision.at.isoformat()}", {"cluster": cluster.name})
    system.sweeps.record(decision)
    return decision


def _needs(system: System) -> dict[str, str]:
    """What needs each cluster, in words: a run of ours, a job of anyone's, or an open drop on its way."""
    needs: dict[str, str] = {}
    for drop in system.drops.open():
        if route := system.routes.get(drop.key.route):
            needs[route.cluster] = f"Drop {drop.key} is open and will train here."
    for job, cluster in system.jobs.active():
        needs[cluster] = f"Job {job} is queued or running."
    for name in system.runs.unsettled():
        try:
            run = system.runs.get(name).value
        except NotFound:
            continue
        if not policy.is_over(run):
            needs[run.cluster] = f"Run {run.name} is {run.state}."
    return needs
