"""Forecast when waiting runs will start, assuming that runs take as long as the newest runs of their kind did. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.clusters.model import Cluster


@dataclass(frozen=True)
class Claim:
    """A run that has nodes of a cluster, or waits for nodes. `seconds` is the remaining time of the run, None if
    unknown.

    `waited` is how many seconds the run has waited so far.
    """

    run: str
    nodes: int
    begun: bool
    seconds: float | None
    waited: float = 0.0


@dataclass(frozen=True)
class Forecast:
    """When the waiting runs of a cluster will start.

    `seconds` has in how many seconds a run will start. `after` has the runs of unknown length of which a run needs
    nodes. A run may be in neither.
    """

    seconds: dict[str, float]
    after: dict[str, tuple[str, ...]]


def forecast(cluster: Cluster, claims: Sequence[Claim], start_seconds: float | None) -> Forecast:
    """Return when the waiting runs will start.

    Runs start in the order of `claims`. New nodes take `start_seconds` to arrive, None if unknown. Nodes that work
    without a claim, or for a run of unknown length, are not expected to become free. An overdue start has a negative
    value, so that the forecast moment stays the same while time passes.
    """
    begun = [claim for claim in claims if claim.begun]
    ends = [(claim.seconds, claim.nodes) for claim in begun if claim.seconds is not None]
    heapq.heapify(ends)
    free = cluster.max_nodes - max(cluster.busy_nodes, sum(claim.nodes for claim in begun))
    idle, at, expected = cluster.idle_nodes, None, {}
    waits = [claim for claim in claims if not claim.begun]
    for claim in waits:
        while free < claim.nodes and ends:
            at, freed = heapq.heappop(ends)
            free, idle = free + freed, idle + freed
        begin = _begin(claim, at, idle, start_seconds)
        if free < claim.nodes or begin is None:
            break
        expected[claim.run] = begin
        free, idle = free - claim.nodes, max(0, idle - claim.nodes)
        if claim.seconds is not None:
            heapq.heappush(ends, (begin + claim.seconds, claim.nodes))
    others = waits[len(expected) :]
    if not others or free >= others[0].nodes:
        return Forecast(expected, {})
    endless = tuple(c.run for c in claims if c.seconds is None and (c.begun or c.run in expected))
    return Forecast(expected, {claim.run: endless for claim in others if endless})


def _begin(claim: Claim, freed_at: float | None, idle: int, start_seconds: float | None) -> float | None:
    """Return when a run starts whose nodes are free since `freed_at` (None: always); None if the time for new nodes is
    unknown.
    """
    if idle >= claim.nodes:
        return freed_at or 0.0
    if start_seconds is None:
        return None
    return start_seconds - claim.waited if freed_at is None else freed_at + start_seconds


def usual_start(waits: Iterable[float]) -> float | None:
    """Return how long new nodes take: the lower quartile of the newest waits, because longer waits were mostly for
    other runs.
    """
    newest = sorted(list(waits)[:20])
    return newest[len(newest) // 4] if newest else None
