"""The nodes from which a run with a deadline may choose: clusters of both tiers, their prices, and their history."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from shared.clusters.model import LOW_PRIORITY, Cluster
from shared.deadlines.changes_of_nodes import PATIENCE
from shared.deadlines.pool import Pool, learn
from shared.deadlines.pools import Sighting, as_one, best_pool
from shared.deadlines.sightings import seen_by_runs
from shared.kernel.errors import Impossible
from shared.kernel.suggest import there_are
from shared.money.admission import newest_runs, price_of
from shared.money.ports import MoneyPorts

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

    `change`: seconds until new nodes work; `pool`: model of low-priority nodes, from all clusters.

    `further` are additional low-priority clusters like `low`. `pools` and `sightings` are what runs have seen of each.
    """

    low: Tier
    further: tuple[str, ...]
    dedicated: Tier
    change: float
    pool: Pool
    pools: dict[str, Pool]
    sightings: dict[str, Sighting]


def tiers_of(ports: MoneyPorts, cluster: str, nodes: int, allowed: frozenset[str] | None) -> Tiers:
    """The cluster, and a cluster of the other tier with equal machines, within `allowed` (None: any).

    Raises Impossible if no such cluster exists, or if a price is unknown.
    """
    clusters = {each.name: each for each in ports.clusters.list()}
    asked = clusters.get(cluster)
    if asked is None:
        raise Impossible(f"The workspace has no cluster {cluster!r}.", "unknown_cluster")
    low = {each.name: each for each in _in_tier(clusters, asked, LOW, nodes, allowed)}
    dedicated = _tier(ports, _in_tier(clusters, asked, DEDICATED, nodes, allowed)[0])
    now = ports.clock()
    seen = seen_by_runs(newest_runs(ports), now)
    waits = [wait for name in low for wait in (seen[name].waits if name in seen else ())]
    change = max(LEAST_CHANGE, median(waits)) if waits else CHANGE
    pools = {name: learn(seen[name].spells if name in seen else ()) for name in low}
    sightings = {name: newest for name in low if name in seen and (newest := seen[name].newest)}
    first = best_pool(pools, sightings, now.timestamp(), change, PATIENCE * change)
    pools = {first: pools.pop(first), **pools}
    further = tuple(name for name in pools if name != first)
    pool = as_one(tuple(pools.values()), change)
    return Tiers(_tier(ports, low[first]), further, dedicated, change, pool, pools, sightings)


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
