"""The times of a run's waits for nodes and of its use of nodes, from the run's record. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from shared.runs.model import FINAL, Placed, Run, RunState

WAITING = (RunState.SUBMITTED, RunState.QUEUED)


@dataclass(frozen=True)
class NodeSpan:
    """A number of nodes in use, or waited for, from `begin` to just before `end`."""

    begin: datetime
    end: datetime
    nodes: int


@dataclass(frozen=True)
class ClusterUse:
    """A run's use of one cluster: the waits for nodes, and the running times.

    `ended` is None until the run ends.
    """

    run: str
    cluster: str
    created: datetime
    waited: tuple[NodeSpan, ...] = ()
    ran: tuple[NodeSpan, ...] = ()
    ended: datetime | None = None

    @property
    def nodes(self) -> int:
        """The largest number of nodes on which the run ever ran."""
        return max((spell.nodes for spell in self.ran), default=0)


def use_of_one_job(run: Run, now: datetime) -> ClusterUse:
    """The use of the cluster by a run of one job until now: the run's nodes during the job's running times.

    A completed run that was never observed running counts as running for a moment at its end.
    """
    ended = end_of(run)
    moments = [(moment.state, moment.at) for moment in run.progress.history if moment.state not in FINAL]
    spells = [
        (state, begin, end) for (state, begin), (_, end) in pairwise([*moments, (run.progress.state, ended or now)])
    ]
    waited = tuple(
        NodeSpan(begin, end, run.asked.nodes) for state, begin, end in spells if state in WAITING and begin < end
    )
    ran = tuple(
        NodeSpan(begin, end, run.asked.nodes)
        for state, begin, end in spells
        if state is RunState.RUNNING and begin < end
    )
    if ended and not ran and run.progress.state is RunState.COMPLETED:
        ran = (NodeSpan(ended, ended, run.asked.nodes),)
    return ClusterUse(run.name, run.asked.cluster, run.created_at, waited, ran, ended)


def worked_seconds(uses: Iterable[ClusterUse], nodes: int) -> float:
    """The seconds of `nodes` nodes for the node-seconds of these uses."""
    spells = (spell for use in uses for spell in use.ran)
    return sum(spell.nodes * (spell.end - spell.begin).total_seconds() for spell in spells) / nodes


def by_place(use: ClusterUse, places: Sequence[Placed]) -> list[ClusterUse]:
    """Split the use of a run whose jobs were on several clusters in turn into one use per cluster."""
    if len(places) < 2:
        return [replace(use, cluster=places[0].cluster) if places else use]
    ends = [place.at for place in places[1:]] + [datetime.max.replace(tzinfo=UTC)]
    uses: dict[str, ClusterUse] = {}
    for place, until in zip(places, ends, strict=True):
        begin = place.at if uses else min(place.at, use.created)
        before = uses.get(place.cluster, replace(use, cluster=place.cluster, waited=(), ran=()))
        waited, ran = (_within(spells, begin, until) for spells in (use.waited, use.ran))
        uses[place.cluster] = replace(before, waited=before.waited + waited, ran=before.ran + ran)
    return list(uses.values())


def _within(spells: Iterable[NodeSpan], begin: datetime, end: datetime) -> tuple[NodeSpan, ...]:
    cut = (replace(spell, begin=max(spell.begin, begin), end=min(spell.end, end)) for spell in spells)
    return tuple(spell for spell in cut if spell.begin < spell.end)


def end_of(run: Run) -> datetime | None:
    """The end of the run; None for an unfinished run."""
    return run.progress.history[-1].at if run.progress.state in FINAL and run.progress.history else None


def seconds_of(run: Run) -> float | None:
    """Seconds from the run's first node to its end; None if the run is not completed."""
    if run.progress.state is not RunState.COMPLETED or len(run.progress.history) < 2:
        return None
    begin = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), None)
    return (run.progress.history[-1].at - begin).total_seconds() if begin else None
