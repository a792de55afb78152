"""The place of the next nodes of a run with a deadline, and the past durations of its changes of nodes. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from shared.deadlines.model import Date
from shared.deadlines.pools import best_pool, seen

PATIENCE = 2  # multiple of the usual time until new nodes work
FINEST = 1.25  # measured times are rounded to powers of this factor, because each new value needs a new plan


def next_cluster(date: Date, cluster: str, since: datetime, now: datetime) -> str:
    """The cluster for the next request of low-priority nodes.

    After twice the usual wait, or as soon as this cluster is known to give no nodes, it is the most promising cluster.
    """
    patience, at, sightings = PATIENCE * date.change_seconds, now.timestamp(), date.pace.sightings
    here = sightings.get(cluster)
    refused = here is not None and not here.available and here.at >= since.timestamp()
    if not refused and (now - since).total_seconds() < patience:
        return cluster
    without = {**sightings, cluster: seen(here, False, at)}
    return best_pool(date.due.models, without, at, date.change_seconds, patience)


def waits_for_nodes(date: Date, waits: Iterable[tuple[str, float]]) -> tuple[float, ...]:
    """The seconds of the waits that show the usual wait for nodes.

    A wait for low-priority nodes of more than twice the usual time is left out, because no nodes were available.
    """
    most = PATIENCE * date.due.change_seconds
    return tuple(s for cluster, s in waits if s and (cluster == date.due.dedicated_cluster or s <= most))


def measured(
    usual: float, waits: Sequence[float], joined: Sequence[datetime], rows: Sequence[tuple[float, float]]
) -> tuple[float, float, float]:
    """The seconds of a change of nodes in this run, and the longest and the total pause.

    All are 0 before the first change.

    A change consists of the wait for nodes and the pause. The pause lasts from the start of the new nodes until the
    work exceeds its previous progress. `waits`: seconds of waits for available nodes, or `usual` without any. `joined`:
    times at which nodes started to work. `rows`: step and time of each line of progress.
    """
    measured_pauses = sorted(pause for at in joined if (pause := _pause(at.timestamp(), rows)) is not None)
    pauses = list(dict(measured_pauses).values())  # of nodes that came one after the other, the longest pause
    if not waits and not pauses:
        return 0.0, 0.0, 0.0
    seconds = median(waits or [usual]) + median(pauses or [0.0])
    return math.pow(FINEST, round(math.log(max(seconds, 1.0), FINEST))), max(pauses, default=0.0), sum(pauses)


def _pause(at: float, rows: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """(time of the first progress beyond the old maximum after `at`, seconds of pause); None without such progress.

    The usual time between lines of progress is subtracted from the pause.
    """
    reached = max((step for step, time in rows if time <= at), default=-1.0)
    further = [time for step, time in rows if time > at and step > reached]
    if not further:
        return None
    usual = median([after - before for (_, before), (_, after) in pairwise(rows)] or [0.0])
    return min(further), max(0.0, min(further) - at - usual)
