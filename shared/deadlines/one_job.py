"""How a run of one job changes nodes: the job on one cluster ends, and a new job continues on another cluster. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise, takewhile

from shared.deadlines.changes_of_nodes import next_cluster, waits_for_nodes
from shared.deadlines.holding import HeldNodes, NodeChanges, NodeRequest, Steps
from shared.deadlines.model import Date
from shared.deadlines.plan import NodeChoice
from shared.deadlines.sightings import cluster_at, words_of
from shared.runs.model import Run, RunState
from shared.runs.names import plain_job
from shared.runs.node_use import WAITING


class HoldingOfOneJob:
    """See Holding."""

    overlaps = False

    def nodes(self, run: Run, date: Date, _now: datetime) -> HeldNodes:
        on_low, runs = run.on_cluster in date.due.low_clusters, run.progress.state is RunState.RUNNING
        since = _waits_since(run, date) if on_low and not runs else run.progress.history[-1].at
        requests = (NodeRequest(run.on_cluster, _requested_at(run), runs, _lost(run)),) if on_low else ()
        return HeldNodes(on_low, on_low and runs, since, not on_low, runs, requests=requests)

    def steer(self, run: Run, date: Date, hold: NodeChoice, roomy: str, now: datetime) -> Steps:
        target = date.due.dedicated_cluster if hold is NodeChoice.DEDICATED else _low_cluster(run, date, roomy, now)
        if run.jobs.resubmit or (target == run.on_cluster and not run.moves.to):
            return Steps(run)
        moving = replace(run, moves=replace(run.moves, to=run.moves.to or target, why=_why(date, target, now)))
        return Steps(moving, (plain_job(run.name, run.jobs.number),))

    def changes(self, run: Run, date: Date) -> NodeChanges:
        starts = [
            (before.at, after.at)
            for before, after in pairwise(run.progress.history)
            if after.state is RunState.RUNNING and before.state in WAITING
        ]
        waits = [(cluster_at(run, asked), (began - asked).total_seconds()) for asked, began in starts]
        return NodeChanges(waits_for_nodes(date, waits), tuple(began for _, began in starts))

    def mended(self, run: Run, _date: Date) -> Run:
        return run


def _low_cluster(run: Run, date: Date, roomy: str, now: datetime) -> str:
    """The cluster of the job, for a run that should hold low-priority nodes or wait for them."""
    if run.on_cluster not in date.due.low_clusters:
        return roomy
    if run.progress.state is RunState.RUNNING:
        return run.on_cluster
    return next_cluster(date, run.on_cluster, _requested_at(run), now)


def _requested_at(run: Run) -> datetime:
    """Since when the present job has been in its cluster's queue, or has run."""
    return max(run.progress.history[-1].at, *(place.at for place in run.moves.places[-1:]))


def _waits_since(run: Run, date: Date) -> datetime:
    """Since when the run has had no nodes, or has been back on a low-priority cluster."""
    waiting = [moment.at for moment in takewhile(lambda m: m.state is not RunState.RUNNING, run.progress.history[::-1])]
    on_low = [each.at for each in takewhile(lambda p: p.cluster in date.due.low_clusters, run.moves.places[::-1])]
    return max(waiting[-1], *on_low[-1:])


def _lost(run: Run) -> bool:
    """Whether the run had nodes on its present cluster."""
    worked = [moment.at for moment in run.progress.history if moment.state is RunState.RUNNING]
    return bool(worked) and cluster_at(run, worked[-1]) == run.on_cluster


def _why(date: Date, target: str, now: datetime) -> str:
    if target == date.due.dedicated_cluster:
        return date.pace.holds_why
    return f"{date.pace.holds_why} {words_of(date.pace.sightings.get(target), target, now)}"
