"""Count a route's new files by the closings of its drops, and from time to time by the drops themselves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from shared.drops.ports import Drops
from shared.schedules.model import Schedule

SETTLED = timedelta(minutes=2)  # a closing gets its time before it is written, from a clock that may differ
RECOUNT = timedelta(hours=6)  # to include closings by the previous version, while both versions run
PAGE = 1000  # drops per request when a route's files are counted


def from_here(schedule: Schedule, files: int, now: datetime) -> Schedule:
    """Return the schedule with all of the route's current files marked as old."""
    return replace(schedule, counted=files, arrived=0, counted_until=now, counted_for=files, recounted_at=now)


def count(drops: Drops, schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule with the files since the last count. Reads one range of closings."""
    if schedule.counted_until is None:  # written by a version that does not record closings
        return _recounted(drops, schedule, now)
    if schedule.counted_for is None:  # written by a version that counted only closings
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
    """Return the number of files in the route's drops at the drops' last closing."""
    total, after = 0, None
    while True:
        page = drops.listed(route, after, PAGE)
        total += sum(drop.blobs for drop in page)
        if len(page) < PAGE:
            return total
        after = page[-1].key
