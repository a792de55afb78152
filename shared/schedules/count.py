"""New files of a route, counted by the closings of its drops, and now and then by the drops themselves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from shared.drops.ports import Drops
from shared.schedules.model import Schedule

SETTLED = timedelta(minutes=2)  # a closing's time is taken before it is written, by a clock that may differ
RECOUNT = timedelta(hours=6)  # for closings by the version before, while both run
PAGE = 1000  # drops read at once to count a route's files


def from_here(schedule: Schedule, files: int, now: datetime) -> Schedule:
    """A schedule for which all of the route's files so far are old."""
    return replace(schedule, counted=files, arrived=0, counted_until=now, counted_for=files, recounted_at=now)


def count(drops: Drops, schedule: Schedule, now: datetime) -> Schedule:
    """The schedule with the files that have arrived since it was counted last: one range of closings is read."""
    if schedule.counted_until is None:  # of a version that knows no closings
        return _recounted(drops, schedule, now)
    if schedule.counted_for is None:  # of one that knew nothing else
        schedule = _by_closings(drops, schedule, now)
        files = max(0, files_in(drops, schedule.route) - schedule.arrived)
        return replace(schedule, counted=files, counted_for=files, recounted_at=now)
    if schedule.counted_for != schedule.counted or now - (schedule.recounted_at or schedule.created_at) >= RECOUNT:
        return _recounted(drops, schedule, now)
    return _by_closings(drops, schedule, now)


def _recounted(drops: Drops, schedule: Schedule, now: datetime) -> Schedule:
    arrived = max(0, files_in(drops, schedule.route) - schedule.counted)
    return replace(schedule, arrived=arrived, counted_until=now, counted_for=schedule.counted, recounted_at=now)


def _by_closings(drops: Drops, schedule: Schedule, now: datetime) -> Schedule:
    assert schedule.counted_until is not None
    until = max(now - SETTLED, schedule.counted_until)
    if not (added := drops.added(schedule.route, schedule.counted_until, until)):
        return schedule
    return replace(schedule, arrived=max(0, schedule.arrived + added), counted_until=until)


def files_in(drops: Drops, route: str) -> int:
    """How many files the route's drops held when they closed last."""
    total, after = 0, None
    while True:
        page = drops.listed(route, after, PAGE)
        total += sum(drop.blobs for drop in page)
        if len(page) < PAGE:
            return total
        after = page[-1].key
