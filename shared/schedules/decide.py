"""Decide a schedule's firings, and the outcome of each. No I/O.

cronsim provides the cron rules, which are Debian's: a job at a fixed hour that the clock skips runs right after the
skip, and a job in an hour that occurs twice runs once; an hourly or minutely job runs in real time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from shared.kernel.errors import Impossible
from shared.schedules.model import CatchUp, Schedule

ON_TIME = timedelta(minutes=10)  # an instant decided later than this counts as missed
MOST_AT_ONCE = 100  # instants decided in one check; the next check decides the rest
_FORM = 'five fields: minute, hour, day, month, weekday, such as "0 6 * * 1" for Mondays at six'


@dataclass(frozen=True)
class DueFiring:
    """A due firing, and why the firing starts no run; '' for a firing with a run."""

    at: datetime
    skip: str = ""


def instants(cron: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """Yield all instants after `after`, in UTC and in order. Raises Impossible for an invalid expression or zone."""
    zone = read_zone(timezone)
    if len(cron.split()) != 5:
        raise Impossible(f"cron is {cron[:80]!r}; write {_FORM}.", "bad_cron")
    try:
        simulated = CronSim(cron, after.astimezone(zone))
    except CronSimError as exc:
        raise Impossible(f"cron is {cron[:80]!r}: {exc}. Write {_FORM}.", "bad_cron") from exc
    return (at.astimezone(UTC) for at in simulated)


def read_zone(name: str) -> ZoneInfo:
    """Return the time zone with this IANA name. Raises Impossible."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise Impossible(f"timezone is {name[:80]!r}; use a name such as Europe/Berlin or UTC.", "bad_zone") from exc


def next_instants(schedule: Schedule, after: datetime, count: int) -> list[datetime]:
    """Return the next instants; fewer if the expression has no more, none for a schedule of new files."""
    return list(islice(instants(schedule.cron, schedule.timezone, after), count)) if schedule.cron else []


def due(schedule: Schedule, now: datetime) -> list[DueFiring]:
    """Return the instants since the last decision, oldest first, each with the outcome.

    An instant that is on time starts a run. Of the missed instants, `skip` starts none, `latest` starts the last of all
    due instants, and `all` starts each.
    """
    passed = takewhile(lambda at: at <= now, instants(schedule.cron, schedule.timezone, schedule.decided_until))
    due_instants = list(islice(passed, MOST_AT_ONCE))
    return [DueFiring(at, _why_not(schedule.catch_up, at, due_instants[-1], now)) for at in due_instants]


def _why_not(rule: CatchUp, at: datetime, last: datetime, now: datetime) -> str:
    if rule is CatchUp.ALL or now - at <= ON_TIME:
        return ""
    missed = f"It was missed: decided {_span(now - at)} late."
    if rule is CatchUp.LATEST and at == last:
        return ""
    return f"{missed} Catch-up is {rule}."


def _span(time: timedelta) -> str:
    return str(timedelta(seconds=round(time.total_seconds())))


def order_of(at: datetime) -> int:
    """Id of a firing within the schedule: the Unix time in milliseconds."""
    return int(at.timestamp() * 1000)


def enough_new(schedule: Schedule) -> bool:
    """Return whether enough files have arrived in the route's drops since the last firing."""
    return schedule.arrived >= schedule.new_files
