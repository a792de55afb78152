"""The nodes from which a run with a deadline may choose: clusters of both tiers, their prices, and their history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from shared.clusters.model import LOW_PRIORITY, Cluster
from shared.deadlines.pool import Pool, PoolPeriod, learn
from shared.kernel.errors import Impossible
from shared.kernel.suggest import there_are
from shared.money.admission import newest_runs, price_of
from shared.money.ports import MoneyPorts
from shared.runs.decide import has_run
from shared.runs.model import Run, RunState
from shared.runs.node_use import WAITING

LOW, DEDICATED = LOW_PRIORITY, "dedicated"
CHANGE = 300.0  # seconds until new nodes work, without any observation
LEAST_CHANGE = 2.0


@dataclass(frozen=True)
class Tier:
    """A cluster, and the price in dollars per node-hour."""

    cluster: str
    price: float


@dataclass(frozen=True)
class Tiers:
    """The choices of a run with a deadline.

    `change`: seconds until new nodes work; `pool`: model of low-priority nodes.

    `further` are additional low-priority clusters like `low`.
    """

    low: Tier
    further: tuple[str, ...]
    dedicated: Tier
    change: float
    pool: Pool


def tiers_of(ports: MoneyPorts, cluster: str, nodes: int, allowed: frozenset[str] | None) -> Tiers:
    """The cluster, and a cluster of the other tier with equal machines, within `allowed` (None: any).

    Raises Impossible if no such cluster exists, or if a price is unknown.
    """
    clusters = {each.name: each for each in ports.clusters.list()}
    asked = clusters.get(cluster)
    if asked is None:
        raise Impossible(f"The workspace has no cluster {cluster!r}.", "unknown_cluster")
    low = _in_tier(clusters, asked, LOW, nodes, allowed)
    first, dedicated = _tier(ports, low[0]), _tier(ports, _in_tier(clusters, asked, DEDICATED, nodes, allowed)[0])
    spells, waits = _seen(newest_runs(ports), first.cluster, ports.clock())
    change = max(LEAST_CHANGE, median(waits)) if waits else CHANGE
    return Tiers(first, tuple(each.name for each in low[1:]), dedicated, change, learn(spells))


def _tier(ports: MoneyPorts, cluster: Cluster) -> Tier:
    price = price_of(ports, cluster)
    if price is None:
        words = f"No price of {cluster.vm_size} ({cluster.tier}) is known; an administrator can write it in money.yaml."
        raise Impossible(words, "no_price")
    return Tier(cluster.name, price.dollars)


def _in_tier(
    clusters: dict[str, Cluster], asked: Cluster, tier: str, nodes: int, allowed: frozenset[str] | None
) -> list[Cluster]:
    """The clusters of this tier with equal machines. If the requested cluster is in the tier, this cluster comes
    first.
    """
    alike = [
        each
        for name, each in sorted(clusters.items())
        if each.tier == tier and each.vm_size == asked.vm_size and (allowed is None or name in allowed)
    ]
    large = [each for each in alike if each.max_nodes >= nodes and each != asked]
    if asked.tier == tier:
        return [asked, *large]
    if large:
        return large
    kind = tier.replace("_", "-")
    why = (
        f"{there_are([each.name for each in alike])} has fewer than {nodes} nodes"
        if alike
        else f"there is none with {asked.vm_size} that the route's `clusters` allow"
    )
    words = f"A run with a date uses {asked.name} and a {kind} cluster of the same machines, and {why}."
    raise Impossible(words, "one_tier")


def _seen(runs: list[Run], cluster: str, now: datetime) -> tuple[list[PoolPeriod], list[float]]:
    """The spells of the cluster's nodes in these runs, and the seconds until each run's first nodes."""
    spells, waits = [], []
    for run in runs:
        if run.asked.cluster != cluster or not has_run(run):
            continue
        moments = [*((moment.state, moment.at) for moment in run.progress.history), (None, now)]
        first = True
        for (state, begin), (after, end) in pairwise(moments):
            seconds = (end - begin).total_seconds()
            if state is RunState.RUNNING:
                spells.append(PoolPeriod(True, seconds, after is RunState.QUEUED))
                first = False
            elif state in WAITING and after is RunState.RUNNING and first:
                waits.append(seconds)
            elif state is RunState.QUEUED and not first:
                spells.append(PoolPeriod(False, seconds, after is RunState.RUNNING))
    return spells, waits
