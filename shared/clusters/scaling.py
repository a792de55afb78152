"""Scaling: decide about every cluster, give the reason, and act on the decision.

A change is made in steps, so that it never removes nodes that something came to need meanwhile: check again; record
that the change is under way; change; check once more, and restore the minimum if a drop or a run arrived in between. A
later check that finds a change interrupted by a crash restores the minimum too, if the cluster is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from shared.clusters.decide import Need, judge_cluster, judge_instance, refused
from shared.clusters.facts import ClusterAtZero, ClusterIdles
from shared.clusters.lease_model import Lease, nodes_held
from shared.clusters.messages import CheckCluster
from shared.clusters.model import INSTANCE, Cluster, Decision
from shared.clusters.needs import ClustersInUse, need, use
from shared.clusters.ports import ClusterPorts, Leases
from shared.clusters.run_warnings import move, watch
from shared.clusters.samples import EVENT, TIMER, sample_of
from shared.clusters.uncounted import fill_gap
from shared.kernel.errors import Conflict, NotFound, TrainyardError
from shared.kernel.person import NOBODY, Person

log = logging.getLogger(__name__)


def scale_clusters(ports: ClusterPorts) -> list[Decision]:
    """Check every cluster once, act on each decision and record it. A failing cluster does not stop the others."""
    clusters = ports.clusters.list()
    used = use(ports)
    warnings, moved = watch(ports, used.states), move(ports, used.states)
    for cluster, words in moved.items():
        warnings[cluster] = [*warnings.get(cluster, []), *words]
    if moved:  # the target clusters may be needed now
        used = use(ports)
    _close_leases(ports, used.leases)
    return _decide_all(_ScalingPass(ports, used, TIMER, warnings), clusters)


def scale_one(ports: ClusterPorts, message: CheckCluster) -> None:
    """Check one cluster soon after the start or end of a run. A deleted cluster is skipped."""
    clusters = [cluster for cluster in ports.clusters.list() if cluster.name == message.cluster]
    if clusters:
        _decide_all(_ScalingPass(ports, use(ports), EVENT), clusters)


def scale_to_zero(ports: ClusterPorts, name: str, force: bool = False, by: Person = NOBODY) -> Decision:
    """Scale a cluster to zero at someone's request; `force` does not wait for its idle time.

    Raises NotFound for an unknown cluster, and Conflict that names the need while the cluster is needed: running work
    is never ended. A cluster at zero stays unchanged.
    """
    clusters = {cluster.name: cluster for cluster in ports.clusters.list() if cluster.kind != INSTANCE}
    if (cluster := clusters.get(name)) is None:
        raise NotFound(f"There is no cluster {name[:80]!r}; there are: {', '.join(sorted(clusters)) or 'none'}.")
    latest = ports.decisions.latest(name)
    decision = judge_cluster(cluster, need(ports.budgets, cluster, use(ports)), latest, ports.clock())
    if force and decision.code == "idle_time":
        why = "Requested before its idle time was over."
        decision = replace(decision, action="to-zero", code="forced", why=why, min_nodes=0)
    if decision.action == "to-zero":
        decision = _lower(ports, cluster, replace(decision, asked_by=by.name, asked_by_id=by.id), None)
        ports.decisions.record(decision, latest)
    if decision.action != "to-zero" and decision.code not in ("scales_itself", "at_zero"):
        raise Conflict(f"Cluster {name} stays. {decision.why}", decision.code)
    return decision


@dataclass(frozen=True)
class _ScalingPass:
    """One check of all clusters."""

    ports: ClusterPorts
    usage: ClustersInUse
    seen_by: str
    warnings: Mapping[str, list[str]] = field(default_factory=dict)

    def decide(self, cluster: Cluster) -> Decision | TrainyardError:
        """Return the recorded decision, or the error if the decision could not even be recorded."""
        try:
            latest = self.ports.decisions.latest(cluster.name)
            fill_gap(self.ports, cluster, latest)
            self.ports.samples.record(sample_of(cluster, self.ports.clock(), self.seen_by))
            decision = self._done(cluster, self._judged(cluster, latest), latest)
            if decision.code == "at_zero" and latest is not None and latest.code != "at_zero":
                self.ports.happened(ClusterAtZero(cluster, decision.at))
            if cluster.nodes and decision.idle_since is not None:
                self.ports.happened(ClusterIdles(cluster, decision.idle_since, self.ports.clock()))
            self.ports.decisions.record(decision, latest)
        except TrainyardError as exc:
            log.warning("cluster %s: %s", cluster.name, exc)
            return exc
        return decision

    def _judged(self, cluster: Cluster, latest: Decision | None) -> Decision:
        if cluster.kind == INSTANCE:
            return judge_instance(cluster, latest, self.ports.rules, self.ports.clock())
        warnings = self._warnings(cluster, latest)
        needed = need(self.ports.budgets, cluster, self.usage, warnings)
        decision = judge_cluster(cluster, needed, latest, self.ports.clock())
        if _lowers(cluster, decision):  # our knowledge of its use may be minutes old: check again
            needed = need(self.ports.budgets, cluster, use(self.ports), warnings)
            decision = judge_cluster(cluster, needed, latest, self.ports.clock())
        return decision

    def _warnings(self, cluster: Cluster, latest: Decision | None) -> list[str]:
        """Return the warnings about runs on the cluster. A check after an event repeats the timer's last warnings."""
        if self.seen_by == TIMER:
            return self.warnings.get(cluster.name, [])
        return list(latest.of_runs) if latest else []

    def _done(self, cluster: Cluster, decision: Decision, latest: Decision | None) -> Decision:
        """Carry out the decision. A refusal is recorded with Azure ML's words; the next check retries."""
        if self.ports.rules.dry_run:
            return replace(decision, dry_run=True)
        try:
            return _carried_out(self.ports, cluster, decision, latest)
        except TrainyardError as exc:
            log.warning("cluster %s: %s", cluster.name, exc)
            under_way = cluster.min_nodes if _lowers(cluster, decision) else 0
            return replace(refused(decision, f"{decision.why} Azure ML refused: {exc}"), replaces=under_way)


def _decide_all(scaling_pass: _ScalingPass, clusters: list[Cluster]) -> list[Decision]:
    outcomes = scaling_pass.ports.each(scaling_pass.decide, clusters)
    if errors := [outcome for outcome in outcomes if isinstance(outcome, TrainyardError)]:
        raise errors[0]
    return outcomes


def _carried_out(ports: ClusterPorts, cluster: Cluster, decision: Decision, latest: Decision | None) -> Decision:
    if decision.action == "stop":
        ports.clusters.stop(cluster.name)
    elif _lowers(cluster, decision):
        return _lower(ports, cluster, decision, latest)
    elif decision.min_nodes is not None:
        ports.clusters.scale(cluster.name, min_nodes=decision.min_nodes)
        log.info("cluster %s: minimum %d. %s", cluster.name, decision.min_nodes, decision.why)
    return decision


def _lowers(cluster: Cluster, decision: Decision) -> bool:
    return decision.min_nodes is not None and decision.min_nodes < cluster.min_nodes


def _lower(ports: ClusterPorts, cluster: Cluster, decision: Decision, latest: Decision | None) -> Decision:
    """Lower the minimum, unless something comes to need the cluster meanwhile. Return the resulting decision."""
    if latest is None or latest.replaces != cluster.min_nodes:  # a refused earlier attempt may have recorded it already
        ports.decisions.record(replace(decision, replaces=cluster.min_nodes), latest)
    ports.clusters.scale(cluster.name, min_nodes=decision.min_nodes)
    if needed := _came_meanwhile(ports, cluster, decision):
        after = judge_cluster(cluster, needed, decision, ports.clock())
        ports.clusters.scale(cluster.name, min_nodes=cluster.min_nodes)
        return replace(
            after, why=f"{after.why} The need arose while the cluster was scaling down, so the scaling was undone."
        )
    log.info("cluster %s: %s. %s", cluster.name, decision.action, decision.why)
    return decision


def _came_meanwhile(ports: ClusterPorts, cluster: Cluster, decision: Decision) -> Need | None:
    """Return the cluster's use now, if the removed nodes are needed again."""
    needed = _needed_now(ports, cluster)
    promised = 0 if needed.over_budget else nodes_held(needed.leases, ports.clock())
    return needed if needed.busy or needed.expected or promised > (decision.min_nodes or 0) else None


def _needed_now(ports: ClusterPorts, cluster: Cluster) -> Need:
    return need(ports.budgets, cluster, use(ports))


def _close_leases(ports: ClusterPorts, leases: Iterable[Lease]) -> None:
    now = ports.clock()
    over = [lease for lease in leases if lease.ended_at <= now]
    ports.each(partial(_close, ports.leases), over)


def _close(leases: Leases, lease: Lease) -> None:
    leases.close(lease.id)
