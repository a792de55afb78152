"""Where a run with a date asks for its next nodes, and what changes of nodes have cost it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from shared.deadlines.model import Date

PATIENCE = 2  # times what new nodes mostly take
FINEST = 1.25  # what was measured counts in such steps, since each other value asks for a new plan


def next_cluster(date: Date, cluster: str, since: datetime, now: datetime) -> str:
    """Where to ask for low-priority nodes that were asked for on this cluster: the next one in turn, if they are later
    than they mostly are."""
    late = (now - since).total_seconds() >= PATIENCE * date.change_seconds
    return date.due.next_low(cluster) if late else cluster


def waits_for_nodes(date: Date, waits: Iterable[tuple[str, float]]) -> tuple[float, ...]:
    """Of these waits on these clusters the seconds of those that say how long nodes take. Low-priority nodes that are
    later than they mostly are were not to be had."""
    most = PATIENCE * date.due.change_seconds
    return tuple(s for cluster, s in waits if s and (cluster == date.due.dedicated_cluster or s <= most))


def measured(
    usual: float, waits: Sequence[float], joined: Sequence[datetime], rows: Sequence[tuple[float, float]]
) -> tuple[float, float, float]:
    """The seconds that a change of nodes takes in this run: until they are there, and until its work is further than it
    was before; and the second part alone, the longest and all together. 0 before the first change.

    `waits`: for how long nodes were waited for that could be had, `usual` what that takes where there were none;
    `joined`: when nodes began to work; `rows`: step and time of each line of progress.
    """
    measured_pauses = sorted(pause for at in joined if (pause := _pause(at.timestamp(), rows)) is not None)
    pauses = list(dict(measured_pauses).values())  # of nodes that came one after the other, the longest
    if not waits and not pauses:
        return 0.0, 0.0, 0.0
    seconds = median(waits or [usual]) + median(pauses or [0.0])
    return math.pow(FINEST, round(math.log(max(seconds, 1.0), FINEST))), max(pauses, default=0.0), sum(pauses)


def _pause(at: float, rows: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """When after this moment the work was further than before it, and after how long, beyond the time between lines."""
    reached = max((step for step, time in rows if time <= at), default=-1.0)
    further = [time for step, time in rows if time > at and step > reached]
    if not further:
        return None
    usual = median([after - before for (_, before), (_, after) in pairwise(rows)] or [0.0])
    return min(further), max(0.0, min(further) - at - usual)
