"""Determine how many nodes a cluster had at each moment, which is what was paid for. Pure.

A count holds until the next count. No count happens at the moment when nodes arrive, so a run that starts between two
counts shows that its nodes arrived: the run has them until the next count, and had them while it waited, for at most
STARTING. Nodes that other runs already had, and nodes that were counted as free, are not added again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from shared.clusters.samples import Sample
from shared.runs.node_use import ClusterUse, NodeSpan

HOLDS = timedelta(hours=1)  # maximum validity of a count, if no other count follows or the cluster is gone
STARTING = timedelta(minutes=5)  # longest part of a run's wait in which its nodes are assumed to exist uncounted


@dataclass(frozen=True)
class Paid:
    """A stretch of time in which a cluster had this many nodes of this size and tier."""

    spell: NodeSpan
    vm_size: str
    tier: str


def paid(samples: Iterable[Sample], uses: Iterable[ClusterUse], since: datetime, until: datetime) -> list[Paid]:
    """Return what a cluster had between two moments, from its counts (oldest first) and the runs that used it.

    The counts must begin HOLDS before `since`. Before the first count the cluster is assumed to have no nodes.
    """
    counts = list(samples)
    size = (counts[0].vm_size, counts[0].tier) if counts else ("", "")
    counts.insert(0, Sample("", since - HOLDS, *size))
    running = _Running(uses)
    ends = [sample.at for sample in counts[1:]] + [until]
    return [
        Paid(stretch, sample.vm_size, sample.tier)
        for sample, end in zip(counts, ends, strict=True)
        for spell in _until_the_next(sample, end, running)
        if (stretch := _within(spell, since, until)) and stretch.nodes
    ]


class _Running:
    """The runs of a cluster by the times at which they ran."""

    def __init__(self, uses: Iterable[ClusterUse]) -> None:
        ran = ((spell, before, use) for use in uses for before, spell in pairwise((None, *use.ran)) if spell)
        self._starts = sorted(ran, key=lambda start: start[0].begin)
        self._begins = [spell.begin for spell, _, _ in self._starts]
        changes = [change for spell, _, _ in self._starts for change in _changes(spell)]
        changes.sort()
        self._moments = [at for at, _ in changes]
        self._nodes = [0, *accumulate(nodes for _, nodes in changes)]

    def nodes(self, at: datetime) -> int:
        return self._nodes[bisect_right(self._moments, at)]

    def moments(self, begin: datetime, end: datetime) -> list[datetime]:
        """Return when the number of running nodes changed."""
        return self._moments[bisect_left(self._moments, begin) : bisect_left(self._moments, end)]

    def began(self, begin: datetime, end: datetime) -> Iterator[tuple[NodeSpan, list[NodeSpan]]]:
        """Yield each spell that started in this interval, for at most HOLDS, with its waits for nodes before."""
        for spell, before, use in self._starts[bisect_left(self._begins, begin) : bisect_left(self._begins, end)]:
            since = max(begin, spell.begin - STARTING, before.end if before else begin)
            waited = (NodeSpan(wait.begin, wait.end, min(wait.nodes, spell.nodes)) for wait in use.waited)
            ran = NodeSpan(spell.begin, min(spell.end, spell.begin + HOLDS), spell.nodes)
            yield ran, [cut for wait in waited if (cut := _within(wait, since, spell.begin))]


def _until_the_next(count: Sample, end: datetime, running: _Running) -> Iterator[NodeSpan]:
    """Yield what the cluster had from one count until the next."""
    came = list(running.began(count.at, end))
    if not came:
        yield NodeSpan(count.at, min(end, count.at + HOLDS), count.nodes)
        return
    ran, waited = [spell for spell, _ in came], [wait for _, waits in came for wait in waits]
    moments = {moment for spell in (*ran, *waited) for moment in (spell.begin, spell.end)}
    moments |= {count.at, count.at + HOLDS, end, *running.moments(count.at, end)}
    for begin, until in pairwise(sorted(moment for moment in moments if count.at <= moment <= end)):
        counted = count.nodes if begin < count.at + HOLDS else 0
        new = _nodes_at(ran, begin)
        old = running.nodes(begin) - new
        yield NodeSpan(begin, until, max(counted, min(counted, old) + new + _nodes_at(waited, begin)))


def _changes(spell: NodeSpan) -> Iterator[tuple[datetime, int]]:
    yield spell.begin, spell.nodes
    yield spell.end, -spell.nodes


def _nodes_at(spells: Iterable[NodeSpan], at: datetime) -> int:
    return sum(spell.nodes for spell in spells if spell.begin <= at < spell.end)


def _within(spell: NodeSpan, since: datetime, until: datetime) -> NodeSpan | None:
    begin, end = max(spell.begin, since), min(spell.end, until)
    return NodeSpan(begin, end, spell.nodes) if begin < end else None
