"""The sweep: one decision for every cluster, keep or to zero, with its reason."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from shared.clusters.decide import Need, judge_cluster
from shared.clusters.model import Cluster, Decision
from shared.clusters.samples import sample_of
from shared.events.announce import announce
from shared.kernel.errors import Conflict, NotFound
from shared.notices.watch import look_at_idleness
from shared.runs.decide import is_over
from shared.runs.model import RunState
from shared.system import System

log = logging.getLogger(__name__)

UNFINISHED = (RunState.RECEIVED, RunState.SUBMITTED, RunState.QUEUED, RunState.RUNNING)
RECENT = 100  # runs looked at for the time of a cluster's last use


def sweep(system: System) -> list[Decision]:
    """Look at every cluster once, bring idle ones to zero, and record each decision."""
    clusters = system.clusters.list()
    for cluster in clusters:
        system.samples.record(sample_of(cluster, system.clock()))
    needs = _needs(system, clusters)
    return [_decide(system, cluster, needs[cluster.name]) for cluster in clusters]


def scale_to_zero(system: System, name: str, force: bool = False) -> Decision:
    """Bring a cluster to zero because someone asks for it; `force` doesn't wait for its idle time.

    Raises NotFound for an unknown cluster, and Conflict, with what needs it, while it is needed: running work is never
    ended. One that is at zero already stays so.
    """
    clusters = {cluster.name: cluster for cluster in system.clusters.list()}
    if (cluster := clusters.get(name)) is None:
        raise NotFound(f"There is no cluster {name[:80]!r}; there are: {', '.join(sorted(clusters)) or 'none'}.")
    need = _needs(system, [cluster])[name]
    decision = judge_cluster(cluster, need, system.sweeps.latest(name), system.clock())
    if force and decision.code == "idle_time":
        decision = replace(decision, action="to-zero", code="forced", why="Asked for, before its idle time was over.")
    if decision.action == "to-zero":
        _to_zero(system, decision)
        system.sweeps.record(decision)
    elif decision.code not in ("scales_itself", "at_zero"):
        raise Conflict(f"Cluster {name} stays. {decision.why}", decision.code)
    return decision


def _decide(system: System, cluster: Cluster, need: Need) -> Decision:
    latest = system.sweeps.latest(cluster.name)
    decision = judge_cluster(cluster, need, latest, system.clock())
    if decision.action == "to-zero":  # to change the clusters before this one may have taken minutes: look again
        decision = judge_cluster(cluster, _needs(system, [cluster])[cluster.name], latest, system.clock())
    if decision.action == "to-zero":
        _to_zero(system, decision)
    if decision.code == "at_zero" and latest is not None and latest.code != "at_zero":
        announce(system, "ClusterAtZero", f"{cluster.name}/{decision.at.isoformat()}", {"cluster": cluster.name})
    look_at_idleness(system, cluster, decision.idle_since)
    system.sweeps.record(decision)
    return decision


def _to_zero(system: System, decision: Decision) -> None:
    system.clusters.to_zero(decision.cluster)
    log.info("cluster %s: to zero. %s", decision.cluster, decision.why)


def _needs(system: System, clusters: list[Cluster]) -> dict[str, Need]:
    """What is known of each cluster's use."""
    busy, last_used = _busy(system) if clusters else {}, _last_used(system) if clusters else {}
    return {c.name: Need(busy.get(c.name), last_used.get(c.name)) for c in clusters}


def _busy(system: System) -> dict[str, str]:
    """What needs each cluster, in words: a run of ours, a job of anyone's, or an open drop on its way."""
    needs: dict[str, str] = {}
    for drop in system.drops.open():
        if route := system.routes.get(drop.key.route):
            needs[route.cluster] = f"Drop {drop.key} is open and will train here."
    for job, cluster in system.jobs.active():
        needs[cluster] = f"Job {job} is queued or running."
    for state in UNFINISHED:
        for name, cluster in system.runs.in_state(state):
            needs[cluster] = f"Run {name} is {state}."
    return needs


def _last_used(system: System) -> dict[str, datetime]:
    """When the last of the newest runs ended on each cluster: a job may begin and end between two sweeps."""
    used: dict[str, datetime] = {}
    for run in system.runs.newest(RECENT):
        if is_over(run) and run.history:
            used[run.cluster] = max(run.history[-1].at, used.get(run.cluster, run.history[-1].at))
    return used
