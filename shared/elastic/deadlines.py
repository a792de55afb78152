"""How an elastic run with a deadline holds nodes: members on dedicated nodes replace members without nodes. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from msgspec.structs import replace as with_

from shared.deadlines.changes_of_nodes import next_cluster, waits_for_nodes
from shared.deadlines.holding import HeldNodes, NodeChanges, NodeRequest, Steps
from shared.deadlines.model import Date
from shared.deadlines.plan import NodeChoice
from shared.elastic.decide import with_next_job
from shared.elastic.model import DEDICATED_FROM, KIND, Elastic, Member, Size, elastic_of, member_job
from shared.runs.model import FINAL, Run, RunState
from shared.runs.node_use import WAITING

_ASKING = (*WAITING, RunState.RUNNING)


class OfMembers:
    """See Holding."""

    overlaps = True

    def nodes(self, run: Run, date: Date, _now: datetime) -> HeldNodes:
        low, dedicated = _by_tier(elastic_of(run))
        running = sum(m.state is RunState.RUNNING for m in (*low, *dedicated))
        missing = [m for m in low if m.state is not RunState.RUNNING]
        since = min((m.asked_at or m.at for m in missing), default=None) or max(m.at for m in low)
        standing_in = bool(dedicated) and date.pace.holds is not NodeChoice.ONE
        in_danger = running > 0 and bool(missing)
        requests = tuple(
            NodeRequest(_place(date, m), m.at, m.state is RunState.RUNNING, m.failure is not None)
            for m in low
            if m.state in _ASKING
        )
        return HeldNodes(True, not missing, since, standing_in, running >= run.asked.nodes, in_danger, requests)

    def steer(self, run: Run, date: Date, hold: NodeChoice, _roomy: str, now: datetime) -> Steps:
        """Start and end members until the run holds `hold`.

        Low-priority members stay in their queue, which costs nothing. Dedicated members replace members without a node,
        or stand by if only they can meet the deadline. Dedicated members end once they are not needed.
        """
        elastic = elastic_of(run)
        low, _ = _by_tier(elastic)
        missing = sum(m.state is not RunState.RUNNING for m in low)
        dedicated = {
            NodeChoice.BOTH: elastic.dedicated,
            NodeChoice.DEDICATED: missing or len(low),
            NodeChoice.ONE: 1,
        }.get(hold, 0)
        by_index = {m.index: m for m in elastic.members} | _dedicated(elastic, date, dedicated, now)
        by_index |= {m.index: with_(m, moves_to=_next_place(date, m, now)) for m in low if m.state in WAITING}
        members = tuple(by_index[index] for index in sorted(by_index))
        to_end = (m for m in members if m.state not in FINAL and (m.moves_to or m.index >= DEDICATED_FROM + dedicated))
        steered = run.having(replace(elastic, dedicated=dedicated, members=members))
        return Steps(steered, tuple(member_job(run.name, member.index, member.attempt) for member in to_end))

    def changes(self, run: Run, date: Date) -> NodeChanges:
        """Each member's latest wait, and the times at which the number of running members grew."""
        elastic, due = elastic_of(run), date.due
        waits = [(due.dedicated_cluster if m.is_dedicated else due.low_cluster, m.waited) for m in elastic.members]
        sizes = pairwise((Size(run.created_at, 0), *elastic.sizes))
        grown = [after.at for before, after in sizes if after.nodes > before.nodes]
        return NodeChanges(waits_for_nodes(date, waits), tuple(grown))

    def mended(self, run: Run, date: Date) -> Run:
        """The run with the clusters of its dedicated members, which the previous version did not write."""
        elastic, where = elastic_of(run), date.due.dedicated_cluster
        if all(m.cluster for m in elastic.members if m.is_dedicated):
            return run
        members = tuple(with_(m, cluster=where) if m.is_dedicated else m for m in elastic.members)
        return run.having(replace(elastic, members=members))


def _dedicated(elastic: Elastic, date: Date, count: int, now: datetime) -> dict[int, Member]:
    """The dedicated members by index, of which the first `count` have live jobs."""
    members = {m.index: m for m in elastic.members if m.is_dedicated}
    for index in range(DEDICATED_FROM, DEDICATED_FROM + count):
        member = members.get(index)
        if member is None:
            why, where = date.pace.holds_why, date.due.dedicated_cluster
            members[index] = Member(index, 1, RunState.RECEIVED, now, why, cluster=where, asked_at=now)
        elif member.state in FINAL:
            members[index] = with_next_job(member, now)
    return members


def _next_place(date: Date, member: Member, now: datetime) -> str:
    """The next cluster of a low-priority member that has waited too long for a node; '' if the member stays."""
    here = _place(date, member)
    there = next_cluster(date, here, member.at, now)
    return member.moves_to or (there if there != here else "")


def _place(date: Date, member: Member) -> str:
    return member.cluster or date.due.low_cluster


def _by_tier(elastic: Elastic) -> tuple[list[Member], list[Member]]:
    """All members on low-priority nodes, and the live members on dedicated nodes."""
    low = [m for m in elastic.members if not m.is_dedicated]
    return low, [m for m in elastic.members if m.is_dedicated and m.state not in FINAL]


HOLDING = {KIND: OfMembers()}  # shared/deadlines/kinds.py finds it by this name
