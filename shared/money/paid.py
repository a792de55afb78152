"""Determine how many nodes a cluster had at each moment, which is what was paid for. Pure.

A count holds until the next count. No count happens at the moment when nodes arrive, so a run that starts between two
counts shows that its nodes arrived: the run has them until the next count, and had them while it waited, for at most
STARTING. Runs that take turns on the same nodes need these nodes only once: the nodes at a moment are the most that the
runs which ran or waited at that moment had at once before the next count. Nodes that other runs already had, and nodes
that were counted as free, are not added again. A cluster never has more nodes than its maximum, or than were counted.

Two counts more than HOLDS apart leave a gap, for example while the app was stopped. If the cluster's last change of
size ended before the gap or in it, its size since then is known. For the rest, only nodes are known that both counts
show and whose run was still running some time later: the end of a run may have been recorded when the app was back.
The others are unknown: up to the cluster's maximum, and not paid.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from shared.clusters.samples import COUNTED_EVERY, HOLDS, STEADY, Sample
from shared.runs.node_use import ClusterUse, NodeSpan

STARTING = timedelta(minutes=5)  # longest part of a run's wait in which its nodes are assumed to exist uncounted
NO_LIMIT = 1_000_000  # nodes; the maximum of a cluster whose samples were written without it


@dataclass(frozen=True)
class Paid:
    """A stretch of time in which a cluster had this many nodes of this size and tier.

    `unknown` is the number of further nodes that the cluster may have had without a count.
    """

    spell: NodeSpan
    vm_size: str
    tier: str
    unknown: int = 0

    @property
    def unknown_seconds(self) -> float:
        return self.unknown * (self.spell.end - self.spell.begin).total_seconds()


def paid(samples: Iterable[Sample], uses: Iterable[ClusterUse], since: datetime, until: datetime) -> list[Paid]:
    """Return a cluster's nodes between two moments, from the counts (oldest first) and the runs on the cluster.

    The counts must begin with the last one before `since`, and end with the first one after `until`, if there are such.
    Before the first count the cluster is assumed to have no nodes.
    """
    running = _Running(uses)
    return [
        Paid(stretch, between.count.vm_size, between.count.tier, unknown)
        for between in _intervals(list(samples), since, until)
        for spell, unknown in _had(between, running)
        if (stretch := _within(spell, since, until)) and (stretch.nodes or unknown)
    ]


@dataclass(frozen=True)
class _Known:
    """The least and the greatest number of nodes of a cluster from `begin` to `end`, by its counts alone.

    If `uncounted`, each further node up to `most` is unknown; otherwise, only the runs' records add nodes.
    """

    begin: datetime
    end: datetime
    least: int
    most: int
    uncounted: bool = False


@dataclass(frozen=True)
class _Between:
    """The time between two successive counts. The earlier runs have at most `counted` nodes.

    In a gap, only the runs that still ran at `lasting` are sure to have run all the time.
    """

    count: Sample
    known: tuple[_Known, ...]
    counted: int
    lasting: datetime | None = None


def _intervals(counts: list[Sample], since: datetime, until: datetime) -> Iterator[_Between]:
    first = counts[0] if counts else Sample("", until)
    begin = min(since, first.at)
    nothing = Sample("", begin, first.vm_size, first.tier, maximum=first.maximum)
    yield _Between(nothing, (_Known(begin, first.at, 0, _maximum(nothing)),), 0)
    for count, after in pairwise(counts):
        known = _between_two(count, after)
        gap = len(known) > 1
        counted = min(count.nodes, after.nodes) if gap else count.nodes
        yield _Between(count, known, counted, after.at + HOLDS if gap else None)
    for count in counts[-1:]:
        until = max(until, count.at)
        held, most = min(until, count.at + HOLDS), _maximum(count)
        yield _Between(count, (_Known(count.at, held, count.nodes, most), _Known(held, until, 0, most)), count.nodes)


def _between_two(count: Sample, after: Sample) -> tuple[_Known, ...]:
    """Return the evidence of two successive counts about the time in between."""
    most = max(_maximum(count), _maximum(after) if after.maximum else 0)
    if after.at - count.at <= HOLDS:
        return (_Known(count.at, after.at, count.nodes, most),)
    steady = after.allocation_since if after.allocation == STEADY else None
    if steady and steady <= count.at and count.nodes == after.nodes:
        return (_Known(count.at, after.at, count.nodes, count.nodes),)
    since = min(after.at, max(steady, count.at)) if steady else after.at
    held = min(since, count.at + COUNTED_EVERY)
    most = most if most < NO_LIMIT else max(count.nodes, after.nodes)
    return (
        _Known(count.at, held, count.nodes, most),
        _Known(held, since, 0, most, uncounted=True),
        _Known(since, after.at, after.nodes, after.nodes),
    )


def _maximum(count: Sample) -> int:
    """Return the greatest possible number of the cluster's nodes after this count."""
    return max(count.maximum or NO_LIMIT, count.nodes)


class _Nodes:
    """How many nodes some spells have together, at each moment."""

    def __init__(self, spells: Iterable[NodeSpan]) -> None:
        changes = sorted(change for spell in spells for change in _changes(spell))
        self.moments = [at for at, _ in changes]
        self._nodes = [0, *accumulate(nodes for _, nodes in changes)]

    def at(self, moment: datetime) -> int:
        return self._nodes[bisect_right(self.moments, moment)]


class _Running:
    """The runs of a cluster by their running times."""

    def __init__(self, uses: Iterable[ClusterUse]) -> None:
        ran = ((spell, before, use) for use in uses for before, spell in pairwise((None, *use.ran)) if spell)
        self._starts = sorted(ran, key=lambda start: start[0].begin)
        self._begins = [spell.begin for spell, _, _ in self._starts]
        self._all = _Nodes(spell for spell, _, _ in self._starts)

    def nodes(self, at: datetime) -> int:
        return self._all.at(at)

    def throughout(self, begin: datetime, end: datetime) -> int:
        """Return the nodes of the runs from before the start until after the end of this interval."""
        return sum(spell.nodes for spell, _, _ in self._starts if spell.begin < begin and spell.end >= end)

    def moments(self, begin: datetime, end: datetime) -> list[datetime]:
        """Return when the number of running nodes changed."""
        moments = self._all.moments
        return moments[bisect_left(moments, begin) : bisect_left(moments, end)]

    def began(self, begin: datetime, end: datetime) -> Iterator[_Began]:
        """Yield each spell with a start in this interval, and the run's earlier waits for nodes."""
        for spell, before, use in self._starts[bisect_left(self._begins, begin) : bisect_left(self._begins, end)]:
            since = max(begin, spell.begin - STARTING, before.end if before else begin)
            waited = (NodeSpan(wait.begin, wait.end, min(wait.nodes, spell.nodes)) for wait in use.waited)
            yield _Began(spell, tuple(cut for wait in waited if (cut := _within(wait, since, spell.begin))))


@dataclass(frozen=True)
class _Began:
    """A spell of a run with a start after a count, and the run's waits for nodes since this count."""

    ran: NodeSpan
    waited: tuple[NodeSpan, ...]

    def moments(self) -> set[datetime]:
        return {moment for spell in (self.ran, *self.waited) for moment in (spell.begin, spell.end)}

    def there(self, at: datetime) -> NodeSpan | None:
        """Return the rest of the spell, with the nodes that the run has or waits for; None before and after."""
        nodes = _nodes_at((self.ran, *self.waited), at)
        return NodeSpan(max(at, self.ran.begin), self.ran.end, nodes) if nodes else None


def _had(between: _Between, running: _Running) -> Iterator[tuple[NodeSpan, int]]:
    """Yield the cluster's nodes until the next count, and the possible number of further nodes."""
    begin, end = between.known[0].begin, between.known[-1].end
    came = list(running.began(begin, end))
    if not came and len(between.known) == 1:
        yield NodeSpan(begin, end, between.known[0].least), 0
        return
    moments = {moment for each in came for moment in each.moments()} | {*running.moments(begin, end)}
    new = _Nodes(each.ran for each in came)

    lasting = running.throughout(begin, between.lasting) if between.lasting else None

    def before(at: datetime) -> int:
        return min(between.counted, running.nodes(at) - new.at(at) if lasting is None else lasting)

    for known in between.known:
        cuts = sorted({known.begin, known.end, *(at for at in moments if known.begin < at < known.end)})
        for cut, cut_end in pairwise(cuts):
            there = [rest for each in came if (rest := each.there(cut))]
            nodes = min(known.most, max(known.least, _at_once(there, before, cut)))
            yield NodeSpan(cut, cut_end, nodes), known.most - nodes if known.uncounted else 0


def _at_once(there: list[NodeSpan], before: Callable[[datetime], int], at: datetime) -> int:
    """Return the most nodes that the runs of this moment, running or waiting, have at once before the next count.

    `before`: the nodes of the runs that began before the last count. A run that had ended when its start was recorded
    has its nodes at the moment of its start.
    """

    def nodes(moment: datetime) -> int:
        return sum(rest.nodes for rest in there if rest.begin == moment or rest.begin < moment < rest.end)

    return max(before(moment) + nodes(moment) for moment in {at, *(rest.begin for rest in there)})


def _changes(spell: NodeSpan) -> Iterator[tuple[datetime, int]]:
    yield spell.begin, spell.nodes
    yield spell.end, -spell.nodes


def _nodes_at(spells: Iterable[NodeSpan], at: datetime) -> int:
    return sum(spell.nodes for spell in spells if spell.begin <= at < spell.end)


def _within(spell: NodeSpan, since: datetime, until: datetime) -> NodeSpan | None:
    begin, end = max(spell.begin, since), min(spell.end, until)
    return NodeSpan(begin, end, spell.nodes) if begin < end else None
