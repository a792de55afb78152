"""What runs see of low-priority clusters: from the run itself, from the counts of the clusters' nodes, and from the
history of other runs. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from shared.clusters.model import AllocationCode, Cluster
from shared.deadlines.changes_of_nodes import PATIENCE
from shared.deadlines.holding import NodeRequest
from shared.deadlines.model import Date, span
from shared.deadlines.pool import PoolPeriod
from shared.deadlines.pools import Sighting, seen
from shared.runs.decide import has_run
from shared.runs.model import Run, RunState
from shared.runs.node_use import WAITING


@dataclass
class SeenByRuns:
    """What earlier runs met on one cluster: spells with and without nodes, the seconds until each run's first nodes,
    and the newest sighting."""

    spells: list[PoolPeriod] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    newest: Sighting | None = None

    def add(self, available: bool, begin: datetime, end: datetime, ended: bool) -> None:
        self.spells.append(PoolPeriod(available, (end - begin).total_seconds(), ended))
        if self.newest is None or end.timestamp() > self.newest.at:
            self.newest = Sighting(available, begin.timestamp(), end.timestamp())


def seen_by_runs(runs: Iterable[Run], now: datetime) -> dict[str, SeenByRuns]:
    """What these runs met on their clusters, by cluster."""
    clusters: dict[str, SeenByRuns] = {}
    for run in runs:
        if not has_run(run):
            continue
        moments = [*((moment.state, moment.at) for moment in run.progress.history), (None, now)]
        began = False
        for (state, begin), (after, end) in pairwise(moments):
            here = clusters.setdefault(cluster_at(run, begin), SeenByRuns())
            if state is RunState.RUNNING:
                here.add(True, begin, end, after is RunState.QUEUED)
                began = True
            elif state in WAITING and after is RunState.RUNNING and not began:
                here.waits.append((end - begin).total_seconds())
            elif state is RunState.QUEUED and began:
                here.add(False, begin, end, after is RunState.RUNNING)
    return clusters


def cluster_at(run: Run, at: datetime) -> str:
    """The cluster of the job at this time. The job's place is recorded just before the job's history."""
    return next((each.cluster for each in run.moves.places[::-1] if each.at <= at), run.asked.cluster)


def with_sightings(date: Date, clusters: Mapping[str, Cluster], requests: Iterable[NodeRequest], now: datetime) -> Date:
    """The date with what this check sees of each low-priority cluster.

    A cluster gives nodes if it has some and may have more, or if this run works there. It gives none if Azure refused
    nodes for lack of capacity, or if this run lost its node there or has waited for twice the usual time.
    """
    looks = {name: _gives_nodes(clusters[name]) for name in date.due.low_clusters if name in clusters}
    for request in requests:
        if request.answered:
            looks[request.cluster] = True
        elif not looks.get(request.cluster) and (request.lost or _waited(date, request, now)):
            looks[request.cluster] = False
    before, at = date.pace.sightings, now.timestamp()
    after = {name: seen(before.get(name), look, at) for name, look in looks.items() if look is not None}
    return replace(date, pace=replace(date.pace, sightings={**before, **after}))


def _waited(date: Date, request: NodeRequest, now: datetime) -> bool:
    return (now - request.since).total_seconds() >= PATIENCE * date.change_seconds


def _gives_nodes(cluster: Cluster) -> bool | None:
    """Whether the cluster gives low-priority nodes now; None if its counts don't say it."""
    held = cluster.idle_nodes + cluster.preparing_nodes + cluster.running_nodes
    if cluster.idle_nodes or (held and cluster.nodes < cluster.max_nodes):
        return True
    return False if any(error.code is AllocationCode.CAPACITY for error in cluster.errors) else None


def words_of(sighting: Sighting | None, cluster: str, now: datetime) -> str:
    """What is known of the cluster, as a sentence."""
    if sighting is None:
        return f"No run has tried {cluster} yet."
    ago = now.timestamp() - sighting.at
    when = "now" if ago < 1 else f"{span(ago)} ago"
    return f"{cluster} had {'nodes' if sighting.available else 'none'} when last seen, {when}."
