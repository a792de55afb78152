"""Lease nodes, extend a lease, release it, and keep nodes warm after a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from shared.clusters.lease_model import Lease, Wish, lease_id
from shared.clusters.look import ask_for_look
from shared.clusters.model import INSTANCE, Cluster
from shared.kernel.errors import Changed, Conflict, Impossible, NotFound
from shared.kernel.person import Person
from shared.kernel.versioned import Stored
from shared.runs.model import Run
from shared.runs.progress.workloads import workload
from shared.system import System

WRITE_ATTEMPTS = 10


def lease(system: System, cluster: str, wish: Wish, owner: Person) -> Lease:
    """Promise nodes of a cluster to this owner. The look that brings them up is asked for, and the one that ends them.

    Raises NotFound for an unknown cluster, Impossible for more nodes or a longer time than may be, Conflict if the
    cluster's project may spend nothing more.
    """
    found, now = _cluster(system, cluster), system.clock()
    if wish.nodes > found.max_nodes:
        raise Impossible(
            f"{wish.nodes} nodes are asked for; {cluster} has at most {found.max_nodes}.", "too_many_nodes"
        )
    until = now + timedelta(seconds=wish.seconds)
    _check_length(system, now, until)
    if found.project and (why := system.budgets.exhausted(found.project)):
        raise Conflict(why, "over_budget")
    made = Lease(
        id=lease_id(now, f"{cluster} {owner.name} {system.new_token()}"),
        cluster=cluster,
        nodes=wish.nodes,
        owner=owner.name,
        owner_id=owner.id,
        why=wish.why,
        made_at=now,
        until=until,
        project=found.project,
    )
    system.leases.insert(made)
    _ask_for_looks(system, made)
    return made


def extend(system: System, name: str, seconds: float) -> Lease:
    """Let a lease go on for so many seconds from now, if that is longer. Raises Conflict for one that is over."""

    def longer(stored: Lease, now: datetime) -> Lease:
        if not stored.holds(now):
            raise Conflict(f"Lease {name} ended at {stored.ended_at:%Y-%m-%d %H:%M} UTC. Make a new one.", "lease_over")
        until = max(stored.until, now + timedelta(seconds=seconds))
        _check_length(system, stored.made_at, until)
        return replace(stored, until=until)

    after = _changed(system, name, longer)
    _ask_for_looks(system, after)
    return after


def release(system: System, name: str, by: Person) -> Lease:
    """End a lease now. One that is over stays as it is."""

    def over(stored: Lease, now: datetime) -> Lease:
        if not stored.holds(now):
            return stored
        return replace(stored, released_at=now, released_by=by.name, released_by_id=by.id)

    after = _changed(system, name, over)
    ask_for_look(system, after.cluster)
    return after


def keep_warm(system: System, run: Run) -> None:
    """The lease that a run asked for, from its end on. Asked for twice it is the same one."""
    ended = run.history[-1].at
    until = ended + min(timedelta(seconds=run.keep_warm_seconds), system.rules.longest_lease)
    if until <= system.clock():
        return
    nodes = workload(run).fewest_nodes(run)
    named = lease_id(ended, run.name)
    made = Lease(named, run.cluster, nodes, run.owner, "as it asked", ended, until, run=run.name, owner_id=run.owner_id)
    if system.leases.insert(made):
        _ask_for_looks(system, made)


def _cluster(system: System, name: str) -> Cluster:
    clusters = {cluster.name: cluster for cluster in system.clusters.list() if cluster.kind != INSTANCE}
    if name not in clusters:
        raise NotFound(f"There is no cluster {name[:80]!r}; there are: {', '.join(sorted(clusters)) or 'none'}.")
    return clusters[name]


def _check_length(system: System, made_at: datetime, until: datetime) -> None:
    longest = system.rules.longest_lease
    if until - made_at > longest:
        hours = longest / timedelta(hours=1)
        raise Impossible(
            f"A lease may hold nodes for {hours:g} h in all, until {made_at + longest:%Y-%m-%d %H:%M} UTC.", "too_long"
        )


def _changed(system: System, name: str, change: Callable[[Lease, datetime], Lease]) -> Lease:
    for _ in range(WRITE_ATTEMPTS):
        stored: Stored[Lease] = system.leases.get(name)
        after = change(stored.value, system.clock())
        try:
            return after if after == stored.value else system.leases.replace(after, stored).value
        except Changed:
            continue
    raise Changed(f"Lease {name} changed {WRITE_ATTEMPTS} times meanwhile.")


def _ask_for_looks(system: System, lease: Lease) -> None:
    """One now, which brings the nodes up, and one when the time is over, which lets them go."""
    ask_for_look(system, lease.cluster)
    ask_for_look(system, lease.cluster, (lease.until - system.clock()).total_seconds() + 1)
