"""Lease nodes, extend a lease, and release a lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from shared.clusters.checks import queue_check, queue_checks_of_lease
from shared.clusters.lease_model import Lease, LeaseSpec, lease_id
from shared.clusters.model import INSTANCE, Cluster
from shared.clusters.ports import ClusterPorts, Clusters, Leases
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.person import Person
from shared.kernel.settings import Rules
from shared.kernel.versioned import Stored


def lease(ports: ClusterPorts, cluster: str, spec: LeaseSpec, owner: Person) -> Lease:
    """Lease nodes of a cluster to this owner. Queue two checks: the first scales the cluster up now, the second lets
    the nodes go at the end.

    Raises NotFound for an unknown cluster, Impossible for too many nodes or too long a time, and Conflict if the
    cluster's project may spend nothing more.
    """
    target_cluster, now = _cluster(ports.clusters, cluster), ports.clock()
    if spec.nodes > target_cluster.max_nodes:
        raise Impossible(
            f"{spec.nodes} nodes were requested; {cluster} has at most {target_cluster.max_nodes}.", "too_many_nodes"
        )
    until = now + timedelta(seconds=spec.seconds)
    _check_length(ports.rules, now, until)
    if target_cluster.project and (why := ports.budgets.exhausted(target_cluster.project)):
        raise Conflict(why, "over_budget")
    made = Lease(
        id=lease_id(now, f"{cluster} {owner.name} {ports.new_token()}"),
        cluster=cluster,
        nodes=spec.nodes,
        owner=owner.name,
        owner_id=owner.id,
        why=spec.why,
        made_at=now,
        until=until,
        project=target_cluster.project,
    )
    ports.leases.insert(made)
    queue_checks_of_lease(ports.queues, made, ports.clock())
    return made


def extend(ports: ClusterPorts, name: str, seconds: float) -> Lease:
    """Extend a lease to `seconds` from now, unless the lease ends later. Raises Conflict for an ended lease."""

    def longer(stored: Lease, now: datetime) -> Lease:
        if not stored.holds(now):
            raise Conflict(f"Lease {name} ended at {stored.ended_at:%Y-%m-%d %H:%M} UTC. Make a new one.", "lease_over")
        until = max(stored.until, now + timedelta(seconds=seconds))
        _check_length(ports.rules, stored.made_at, until)
        return replace(stored, until=until)

    after = _changed(ports.leases, ports.clock, name, longer)
    queue_checks_of_lease(ports.queues, after, ports.clock())
    return after


def release(ports: ClusterPorts, name: str, by: Person) -> Lease:
    """End a lease now. An ended lease stays unchanged."""

    def over(stored: Lease, now: datetime) -> Lease:
        if not stored.holds(now):
            return stored
        return replace(stored, released_at=now, released_by=by.name, released_by_id=by.id)

    after = _changed(ports.leases, ports.clock, name, over)
    queue_check(ports.queues, after.cluster)
    return after


def _cluster(clusters: Clusters, name: str) -> Cluster:
    known = {cluster.name: cluster for cluster in clusters.list() if cluster.kind != INSTANCE}
    if name not in known:
        raise NotFound(f"There is no cluster {name[:80]!r}; there are: {', '.join(sorted(known)) or 'none'}.")
    return known[name]


def _check_length(rules: Rules, made_at: datetime, until: datetime) -> None:
    longest = rules.longest_lease
    if until - made_at > longest:
        hours = longest / timedelta(hours=1)
        raise Impossible(
            f"A lease may hold nodes for {hours:g} h in all, until {made_at + longest:%Y-%m-%d %H:%M} UTC.", "too_long"
        )


def _changed(leases: Leases, clock: Clock, name: str, change: Callable[[Lease, datetime], Lease]) -> Lease:
    def write(stored: Stored[Lease]) -> Lease:
        after = change(stored.value, clock())
        return after if after == stored.value else leases.replace(after, stored).value

    return compare_and_set(clock, f"Lease {name}", lambda: leases.get(name), write)
