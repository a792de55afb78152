"""The sweep: one decision for every cluster, with its reason, and what follows from it.

A change is made in steps, so that it never takes a cluster from what came meanwhile: look again; write down that it is
under way; change; look once more, and put the minimum back if a drop or a run came in between. Whoever finds a change
under way whose maker died puts it back too, if the cluster is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from shared.clusters.decide import Need, judge_cluster, judge_instance, refused
from shared.clusters.facts import ClusterAtZero, ClusterIdles
from shared.clusters.lease_model import Lease, nodes_held
from shared.clusters.model import INSTANCE, Cluster, Decision
from shared.clusters.needs import Use, need, use
from shared.clusters.run_warnings import move, watch
from shared.clusters.samples import sample_of
from shared.kernel.errors import Conflict, NotFound, TrainyardError
from shared.kernel.person import NOBODY, Person
from shared.system import System

log = logging.getLogger(__name__)


def sweep(system: System) -> list[Decision]:
    """Look at every cluster once, do what is decided, and record each decision. One that refuses stops no other."""
    clusters = system.clusters.list()
    _close_leases(system)
    warnings, moved = watch(system), move(system)
    for cluster, words in moved.items():
        warnings[cluster] = [*warnings.get(cluster, []), *words]
    return _swept(_Pass(system, use(system), "sweep", warnings), clusters)


def sweep_one(system: System, name: str) -> None:
    """The same for one cluster, as soon as a run on it has begun or ended. Nothing happens to one that is gone."""
    clusters = [cluster for cluster in system.clusters.list() if cluster.name == name]
    if clusters:
        _swept(_Pass(system, use(system), "event"), clusters)


def scale_to_zero(system: System, name: str, force: bool = False, by: Person = NOBODY) -> Decision:
    """Bring a cluster to zero because someone asks for it; `force` doesn't wait for its idle time.

    Raises NotFound for an unknown cluster, and Conflict, with what needs it, while it is needed: running work is never
    ended. One that is at zero already stays so.
    """
    clusters = {cluster.name: cluster for cluster in system.clusters.list() if cluster.kind != INSTANCE}
    if (cluster := clusters.get(name)) is None:
        raise NotFound(f"There is no cluster {name[:80]!r}; there are: {', '.join(sorted(clusters)) or 'none'}.")
    decision = judge_cluster(cluster, need(system, cluster, use(system)), system.sweeps.latest(name), system.clock())
    if force and decision.code == "idle_time":
        why = "Asked for, before its idle time was over."
        decision = replace(decision, action="to-zero", code="forced", why=why, min_nodes=0)
    if decision.action == "to-zero":
        decision = _lower(system, cluster, replace(decision, asked_by=by.name, asked_by_id=by.id), None)
        system.sweeps.record(decision)
    if decision.action != "to-zero" and decision.code not in ("scales_itself", "at_zero"):
        raise Conflict(f"Cluster {name} stays. {decision.why}", decision.code)
    return decision


@dataclass(frozen=True)
class _Pass:
    """One look at all clusters."""

    system: System
    known: Use
    seen_by: str
    warnings: Mapping[str, list[str]] = field(default_factory=dict)

    def decide(self, cluster: Cluster) -> Decision | TrainyardError:
        """The decision, recorded; or the error, if it could not even be recorded."""
        try:
            self.system.samples.record(sample_of(cluster, self.system.clock(), self.seen_by))
            latest = self.system.sweeps.latest(cluster.name)
            decision = self._done(cluster, self._judged(cluster, latest), latest)
            if decision.code == "at_zero" and latest is not None and latest.code != "at_zero":
                self.system.happened(ClusterAtZero(cluster, decision.at))
            if cluster.nodes and decision.idle_since is not None:
                self.system.happened(ClusterIdles(cluster, decision.idle_since, self.system.clock()))
            self.system.sweeps.record(decision)
        except TrainyardError as exc:
            log.warning("cluster %s: %s", cluster.name, exc)
            return exc
        return decision

    def _judged(self, cluster: Cluster, latest: Decision | None) -> Decision:
        if cluster.kind == INSTANCE:
            return judge_instance(cluster, latest, self.system.rules, self.system.clock())
        warnings = self._warnings(cluster, latest)
        needed = need(self.system, cluster, self.known, warnings)
        decision = judge_cluster(cluster, needed, latest, self.system.clock())
        if _lowers(cluster, decision):  # what is known of its use may be minutes old: look again
            needed = need(self.system, cluster, use(self.system), warnings)
            decision = judge_cluster(cluster, needed, latest, self.system.clock())
        return decision

    def _warnings(self, cluster: Cluster, latest: Decision | None) -> list[str]:
        """What was seen of the runs on it; the look after an event leaves them alone, and repeats what was said."""
        if self.seen_by == "sweep":
            return self.warnings.get(cluster.name, [])
        return [words for words in (latest.findings if latest else ()) if words.startswith("Run ")]

    def _done(self, cluster: Cluster, decision: Decision, latest: Decision | None) -> Decision:
        """Carry the decision out. What Azure ML refuses is recorded with its words, and tried again by the next."""
        if self.system.rules.dry_run:
            return replace(decision, dry_run=True)
        try:
            return _carried_out(self.system, cluster, decision, latest)
        except TrainyardError as exc:
            log.warning("cluster %s: %s", cluster.name, exc)
            under_way = cluster.min_nodes if _lowers(cluster, decision) else 0
            return replace(refused(decision, f"{decision.why} Azure ML refused: {exc}"), replaces=under_way)


def _swept(look: _Pass, clusters: list[Cluster]) -> list[Decision]:
    outcomes = look.system.each(look.decide, clusters)
    if errors := [outcome for outcome in outcomes if isinstance(outcome, TrainyardError)]:
        raise errors[0]
    return outcomes


def _carried_out(system: System, cluster: Cluster, decision: Decision, latest: Decision | None) -> Decision:
    if decision.action == "stop":
        system.clusters.stop(cluster.name)
    elif _lowers(cluster, decision):
        return _lower(system, cluster, decision, latest)
    elif decision.min_nodes is not None:
        system.clusters.scale(cluster.name, min_nodes=decision.min_nodes)
        log.info("cluster %s: minimum %d. %s", cluster.name, decision.min_nodes, decision.why)
    return decision


def _lowers(cluster: Cluster, decision: Decision) -> bool:
    return decision.min_nodes is not None and decision.min_nodes < cluster.min_nodes


def _lower(system: System, cluster: Cluster, decision: Decision, latest: Decision | None) -> Decision:
    """Lower the minimum, unless something comes to need the cluster meanwhile; the decision as it then is."""
    if latest is None or latest.replaces != cluster.min_nodes:  # it may be written down since a try that was refused
        system.sweeps.record(replace(decision, replaces=cluster.min_nodes))
    system.clusters.scale(cluster.name, min_nodes=decision.min_nodes)
    if needed := _came_meanwhile(system, cluster, decision):
        after = judge_cluster(cluster, needed, decision, system.clock())
        system.clusters.scale(cluster.name, min_nodes=cluster.min_nodes)
        return replace(after, why=f"{after.why} It came while the cluster was on its way down, which was undone.")
    log.info("cluster %s: %s. %s", cluster.name, decision.action, decision.why)
    return decision


def _came_meanwhile(system: System, cluster: Cluster, decision: Decision) -> Need | None:
    """What is known of the cluster's use now, if something needs the nodes that it has just lost."""
    needed = _needed_now(system, cluster)
    promised = 0 if needed.over_budget else nodes_held(needed.leases, system.clock())
    return needed if needed.busy or needed.expected or promised > (decision.min_nodes or 0) else None


def _needed_now(system: System, cluster: Cluster) -> Need:
    return need(system, cluster, use(system))


def _close_leases(system: System) -> None:
    now = system.clock()
    over: list[Lease] = [lease for lease in system.leases.open() if lease.ended_at <= now]
    system.each(partial(_close, system), over)


def _close(system: System, lease: Lease) -> None:
    system.leases.close(lease.id)
