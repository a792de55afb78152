"""Decide whom each second of each node is charged to. Pure.

paid.py determines the nodes that were paid for; runs and leases explain them. Between two consecutive changes, each
node of a cluster is charged to the first of these that wants it:

    training      a running run, up to its nodes, oldest run first
    allocation    a run that waits for nodes, up to its nodes
    lease         an active lease, up to its nodes
    idle          runs and leases that ended here, latest end first, up to their nodes, for at most IDLE_TAIL
    unexplained   nobody

So each node second is charged exactly once. Times are whole microseconds, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from shared.runs.node_use import ClusterUse, NodeSpan

KINDS = ("training", "allocation", "idle", "lease", "unexplained")
IDLE_TAIL = timedelta(minutes=30)  # nodes that idle longer than this after a run are unexplained
DEFAULT_IDLE = timedelta(seconds=120)  # after which Azure ML releases an idle node by default
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class LeasedNodes:
    """A lease: the number of warm nodes of a cluster, and the duration."""

    lease: str
    cluster: str
    spell: NodeSpan


@dataclass(frozen=True)
class Share:
    """Some nodes of a cluster, from `begin` to before `end`, charged to a run, to a lease, or ('') to no one."""

    kind: str
    who: str
    begin: datetime
    end: datetime
    nodes: int

    @property
    def node_seconds(self) -> float:
        return self.nodes * ((self.end - self.begin) / _SECOND)


class Users:
    """The runs of a cluster, oldest first, for charging many stretches of time."""

    def __init__(self, uses: Iterable[ClusterUse]) -> None:
        ordered = sorted(uses, key=lambda use: (use.created, use.run))
        self.ran = [use for use in ordered if use.ran]
        self.waited = [use for use in ordered if use.waited]


def split(had: NodeSpan, uses: Users | Sequence[ClusterUse], holds: Sequence[LeasedNodes] = ()) -> list[Share]:
    """Charge every node of this stretch of a cluster to the cluster's runs and leases."""
    there = _There.of(had, uses if isinstance(uses, Users) else Users(uses), holds)
    cuts = sorted({had.begin, had.end, *(at for at in there.moments() if had.begin < at < had.end)})
    return _joined([share for cut in pairwise(cuts) for share in _charge(NodeSpan(*cut, had.nodes), there)])


@dataclass(frozen=True)
class _Tail:
    """The time after the end of a run or lease, in which its nodes may idle."""

    begin: datetime
    who: str
    nodes: int

    def touches(self, had: NodeSpan) -> bool:
        return had.begin - IDLE_TAIL < self.begin < had.end


@dataclass(frozen=True)
class _There:
    """The possible users of a node during a stretch, in order."""

    ran: list[ClusterUse]
    waited: list[ClusterUse]
    ended: list[_Tail]
    holds: Sequence[LeasedNodes]

    @classmethod
    def of(cls, had: NodeSpan, users: Users, holds: Sequence[LeasedNodes]) -> _There:
        tails = [_Tail(use.ended, use.run, use.nodes) for use in users.ran if use.ended]
        tails += [_Tail(hold.spell.end, hold.lease, hold.spell.nodes) for hold in holds]
        return cls(
            [use for use in users.ran if any(_touches(spell, had) for spell in use.ran)],
            list(_oldest_waiting(had, users.waited)),
            sorted((tail for tail in tails if tail.touches(had)), key=lambda tail: tail.begin, reverse=True),
            holds,
        )

    def moments(self) -> Iterator[datetime]:
        """Yield when someone starts or stops wanting a node."""
        for use in (*self.ran, *self.waited):
            yield from (at for spell in (*use.ran, *use.waited) for at in (spell.begin, spell.end))
        yield from (at for tail in self.ended for at in (tail.begin, tail.begin + IDLE_TAIL))
        yield from (at for hold in self.holds for at in (hold.spell.begin, hold.spell.end))

    def wants(self, at: datetime) -> Iterator[tuple[str, str, int]]:
        """Yield kind, account and number of nodes wanted at this moment."""
        yield from (("training", use.run, _nodes_at(use.ran, at)) for use in self.ran)
        for use in self.waited:
            yield "allocation", use.run, max(0, _nodes_at(use.waited, at) - _nodes_at(use.ran, at))
        yield from (("lease", hold.lease, _nodes_at((hold.spell,), at)) for hold in self.holds)
        yield from (("idle", t.who, t.nodes) for t in self.ended if t.begin <= at < t.begin + IDLE_TAIL)


def _charge(had: NodeSpan, there: _There) -> Iterator[Share]:
    left = had.nodes
    for kind, who, nodes_needed in there.wants(had.begin):
        if not left:
            return
        if nodes := min(nodes_needed, left):
            yield Share(kind, who, had.begin, had.end, nodes)
            left -= nodes
    if left:
        yield Share("unexplained", "", had.begin, had.end, left)


def _oldest_waiting(had: NodeSpan, waited: list[ClusterUse]) -> Iterator[ClusterUse]:
    """Yield the oldest waiting runs with a chance of a node; later runs get none."""
    left = had.nodes
    for use in waited:
        if use.created >= had.end or left <= 0:
            return
        touching = [spell for spell in use.waited if _touches(spell, had)]
        if touching:
            yield use
        if not use.ran and any(spell.begin <= had.begin and spell.end >= had.end for spell in touching):
            left -= touching[0].nodes


def _touches(spell: NodeSpan, had: NodeSpan) -> bool:
    return spell.begin < had.end and spell.end > had.begin


def _nodes_at(spells: Iterable[NodeSpan], at: datetime) -> int:
    return max((spell.nodes for spell in spells if spell.begin <= at < spell.end), default=0)


def _joined(shares: list[Share]) -> list[Share]:
    """Merge adjacent shares that charge the same account."""
    joined: dict[tuple[str, str, int], Share] = {}
    done: list[Share] = []
    for share in shares:
        key = (share.kind, share.who, share.nodes)
        before = joined.pop(key, None)
        if before and before.end == share.begin:
            share = Share(share.kind, share.who, before.begin, share.end, share.nodes)
        elif before:
            done.append(before)
        joined[key] = share
    return sorted([*done, *joined.values()], key=lambda share: (share.begin, KINDS.index(share.kind), share.who))


def default_seconds(shares: Iterable[Share], until: datetime) -> float:
    """Return the node seconds of the same work if only Azure ML released nodes, DEFAULT_IDLE after their last use.

    The pool shrinks by the node that was used last. The cost of additional starts is left out, so the result is rather
    too low.
    """
    changes: dict[datetime, int] = {}
    for share in shares:
        if share.kind in ("training", "allocation"):
            changes[share.begin] = changes.get(share.begin, 0) + share.nodes
            changes[share.end] = changes.get(share.end, 0) - share.nodes
    total, used, before, free = timedelta(), 0, until, list[datetime]()
    for at in sorted(changes):
        total += used * (at - before)
        used, before = used + changes[at], at
        for _ in range(changes[at]):
            total += min(at - free.pop(), DEFAULT_IDLE) if free else timedelta()
        free += [at] * -changes[at]
    return (total + sum((min(max(until - at, timedelta()), DEFAULT_IDLE) for at in free), timedelta())) / _SECOND
