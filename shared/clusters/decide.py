"""Decide whether to keep a cluster up, and why. No I/O.

The first of these reasons that holds decides:

    busy         a run, or a job of anyone, needs the cluster; the reason names it
    expected     a drop is open that will train on the cluster
    busy_nodes   nodes run something that no known run or job explains
    pinned       an administrator pinned the cluster; the tag trainyard.pin says why
    over_budget  the cluster's project has no money left: to zero, despite any leases
    leased       someone was promised nodes, until a date
    idle         nothing has needed the cluster for its idle time: to zero
    broken       Azure ML can't allocate the requested nodes, or refuses a change; the reason quotes Azure ML
    idle_time    nothing has needed the cluster for N of M seconds: wait
    scales_itself, at_zero   the minimum is already 0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.clusters.lease_model import Lease, nodes_held, words
from shared.clusters.model import Cluster, Decision
from shared.kernel.settings import Rules


@dataclass(frozen=True)
class Need:
    """A cluster's use, in words, and when the last run of Trainyard on it ended.

    `idle_seconds` is the chosen idle time, None for the cluster's own. `warnings` are about runs on the cluster.
    """

    busy: str | None = None
    expected: str | None = None
    leases: tuple[Lease, ...] = ()
    over_budget: str | None = None
    last_used: datetime | None = None
    idle_seconds: float | None = None
    warnings: tuple[str, ...] = ()


def judge_cluster(cluster: Cluster, need: Need, latest: Decision | None, now: datetime) -> Decision:
    """Return one decision about a cluster in any state. Only a cluster without needs goes to zero."""
    held = nodes_held(need.leases, now)
    decision = Decision(cluster.name, "keep", "", "", now)
    decision = replace(decision, findings=(*need.warnings, *_findings(cluster, held)), of_runs=tuple(need.warnings))
    if in_use := _in_use(cluster, need):
        # A change that a crash interrupted may have removed nodes that are needed now.
        nodes = max(held, latest.replaces if latest else 0)
        action, code, why = in_use
        return replace(decision, action=action, code=code, why=why, min_nodes=_raised(cluster, nodes))
    since = (latest.idle_since if latest else None) or now
    decision = replace(decision, idle_since=min(max(since, need.last_used or since), now))  # clocks differ
    if cluster.pin:
        return replace(decision, code="pinned", why=f"Pinned by an administrator: {cluster.pin}")
    if need.over_budget and cluster.min_nodes:
        return replace(decision, action="to-zero", code="over_budget", why=need.over_budget, min_nodes=0)
    if held and not need.over_budget:
        return _leased(cluster, need, held, decision)
    return _idle(cluster, need, decision)


def judge_instance(instance: Cluster, latest: Decision | None, rules: Rules, now: datetime) -> Decision:
    """Return one decision about a compute instance. A running compute instance costs money until someone stops it."""
    decision = Decision(instance.name, "keep", "at_zero", "It is stopped.", now)
    if not instance.nodes:
        return decision
    since = min(instance.allocation_since or now, (latest.idle_since if latest else None) or now)
    hours = (now - since) / timedelta(hours=1)
    why = f"A compute instance that has been on for {hours:.1f} h."
    decision = replace(decision, code="instance_on", why=why, idle_since=since, findings=(why,))
    if instance.pin:
        return replace(decision, code="pinned", why=f"Pinned by an administrator: {instance.pin}", findings=())
    if rules.stop_instances_after is not None and now - since >= rules.stop_instances_after:
        limit = rules.stop_instances_after / timedelta(hours=1)
        return replace(decision, action="stop", code="instance_left_on", why=f"{why} The limit is {limit:g} h.")
    return decision


def refused(decision: Decision, reason: str) -> Decision:
    """Return the decision for an unreadable or unchangeable cluster: leave the cluster, and retry at the next check."""
    return replace(decision, action="wait", code="broken", why=reason, min_nodes=None)


def _in_use(cluster: Cluster, need: Need) -> tuple[str, str, str] | None:
    """Return action, code and reason if something needs the cluster now."""
    if need.busy and cluster.errors and not cluster.running_nodes:
        return "wait", "broken", f"{need.busy} Azure ML says: {cluster.errors[0]}"
    if need.busy:
        return "keep", "busy", need.busy
    if need.expected:
        return "keep", "expected", need.expected
    if cluster.busy_nodes:
        return "keep", "busy_nodes", f"{cluster.busy_nodes} of {cluster.nodes} nodes are running jobs."
    return None


def _raised(cluster: Cluster, nodes: int) -> int | None:
    """Return the new minimum for this many nodes; None if unchanged."""
    nodes = min(nodes, cluster.max_nodes)
    return nodes if nodes > cluster.min_nodes else None


def _leased(cluster: Cluster, need: Need, held: int, decision: Decision) -> Decision:
    active = [lease for lease in need.leases if lease.holds(decision.at)]
    decision = replace(decision, code="leased", why=words(active), min_nodes=_raised(cluster, held))
    if cluster.min_nodes > held and _idle_for(decision) >= _idle_time(cluster, need):
        return replace(decision, min_nodes=held)
    return decision


def _idle(cluster: Cluster, need: Need, decision: Decision) -> Decision:
    if cluster.min_nodes == 0:
        return _at_zero(cluster, need, decision)
    idle, limit = _idle_for(decision), _idle_time(cluster, need)
    if idle >= limit:
        why = f"Nothing has needed it for {idle.total_seconds():.0f} s; its minimum was {cluster.min_nodes}."
        return replace(decision, action="to-zero", code="idle", why=why, min_nodes=0)
    if cluster.errors:
        return replace(decision, action="wait", code="broken", why=f"Azure ML says: {cluster.errors[0]}")
    why = f"Idle for {idle.total_seconds():.0f} of {limit.total_seconds():g} s."
    return replace(decision, action="wait", code="idle_time", why=why)


def _at_zero(cluster: Cluster, need: Need, decision: Decision) -> Decision:
    if cluster.nodes == 0:
        said = f" Azure ML said: {cluster.errors[0]}" if cluster.errors else ""
        return replace(decision, code="at_zero", why=f"{need.over_budget or 'It has no nodes.'}{said}")
    up = "1 node is" if cluster.nodes == 1 else f"{cluster.nodes} nodes are"
    why = f"Its minimum is 0; {up} up, and Azure ML removes them after {cluster.idle_seconds:g} s of idling."
    return replace(decision, action="wait", code="scales_itself", why=why)


def _idle_for(decision: Decision) -> timedelta:
    return decision.at - (decision.idle_since or decision.at)


def _idle_time(cluster: Cluster, need: Need) -> timedelta:
    return timedelta(seconds=cluster.idle_seconds if need.idle_seconds is None else need.idle_seconds)


def _findings(cluster: Cluster, held: int) -> Iterator[str]:
    if cluster.min_nodes > held and not cluster.pin:
        explanation = (
            f"leases explain {held} of them"
            if held
            else "no lease and no pin explains it; it is removed when no job runs"
        )
        yield f"Its minimum is {cluster.min_nodes}; {explanation}."
    if cluster.unusable_nodes:
        yield f"{cluster.unusable_nodes} of its nodes are unusable but paid for."
