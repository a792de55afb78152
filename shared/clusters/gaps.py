"""The gaps between a cluster's jobs, and the cost of starting a node, computed from the cluster's runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from statistics import median

from shared.runs.model import Run
from shared.runs.progress.workloads import workload

START_SECONDS = 300.0  # the cost of a start until one was observed: Azure takes 3 to 5 minutes for a node from zero
LEAST_START, MOST_START = (
    30.0,
    1800.0,
)  # seconds; a shorter wait was not a start, and a longer one waited for something else
STARTS_USED = 50


def gaps_of(runs: Iterable[Run], now: datetime) -> list[float]:
    """Return the seconds in which no run of this cluster had or wanted a node, ordered by the gaps' ends."""
    spells = sorted(
        (min(s.begin for s in (*use.waited, *use.ran)), max(s.end for s in (*use.waited, *use.ran)))
        for use in (use for run in runs for use in workload(run).uses(run, now))
        if use.waited or use.ran
    )
    gaps, end = [], None
    for begin, its_end in spells:
        if end is not None and begin > end:
            gaps.append((begin - end).total_seconds())
        end = its_end if end is None else max(end, its_end)
    return gaps


def start_seconds(runs: Iterable[Run], now: datetime) -> float:
    """Return the node seconds of a node's start: the median of the newest waits that a start can explain."""
    uses = [use for run in runs for use in workload(run).uses(run, now) if any(s.begin < s.end for s in use.ran)]
    waits = [(use.waited[0].end - use.waited[0].begin).total_seconds() for use in uses if use.waited]
    starts = [wait for wait in waits if LEAST_START <= wait <= MOST_START]
    return median(starts[-STARTS_USED:]) if starts else START_SECONDS
