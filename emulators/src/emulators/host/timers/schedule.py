"""When a timer fires: NCRONTAB expressions, as the NCrontab library reads them, and constant TimeSpan intervals.

NCRONTAB is not classic cron: seconds come first, and day of month AND day of week must both match. All times are UTC,
as in Azure by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from emulators.host import timespan

MONTHS: tuple[str, ...] = ("january", "february", "march", "april", "may", "june")
MONTHS += ("july", "august", "september", "october", "november", "december")
DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
# A date such as Monday, 29 February recurs within 40 years, even across 2100, which is not a leap year.
HORIZON_DAYS = 366 * 41


@dataclass(frozen=True)
class Field:
    """One field of a cron expression: the name, the bounds (inclusive), and the names of values."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    def parse(self, text: str) -> tuple[int, ...]:
        """Return the values of `text`, ascending. Raises ValueError with the field and the part."""
        return tuple(sorted({value for part in text.split(",") for value in self._part(part)}))

    def _part(self, part: str) -> range:
        span, slash, step_text = part.partition("/")
        step = self._number(step_text, part) if slash else 1
        if span == "*":
            low, high = self.first, self.last
        elif "-" in span:
            low, high = sorted(self._value(end, part) for end in span.split("-", 1))  # NCrontab swaps 5-1 too
        else:
            low = self._value(span, part)
            high = self.last if slash else low
        if step < 1 or low < self.first or high > self.last:
            raise ValueError(f"{part!r} is outside {self.first}-{self.last} in the field {self.name}")
        return range(low, high + 1, step)

    def _value(self, text: str, part: str) -> int:
        for index, name in enumerate(self.names):
            if text and name.startswith(text.lower()):
                return index + self.first
        return self._number(text, part)

    def _number(self, text: str, part: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{part!r} is not understood in the field {self.name}: NCRONTAB has * , - / and names")
        return int(text)


FIELDS = (
    Field("second", 0, 59),
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day", 1, 31),
    Field("month", 1, 12, MONTHS),
    Field("day of week", 0, 6, DAYS),
)


class Schedule(Protocol):
    """`next` is the first firing strictly after a time. Schedules too frequent to monitor keep no status blob."""

    monitored: bool
    adjust_for_dst: bool  # the function's TimerRequest.schedule

    def next(self, after: datetime) -> datetime: ...


class Cron:
    """An NCRONTAB expression of six fields, or of five fields, which fires at second 0."""

    adjust_for_dst = True

    def __init__(self, expression: str) -> None:
        parts = expression.split()
        if len(parts) not in (5, 6):
            raise ValueError(f"{expression!r} has {len(parts)} fields; NCRONTAB has 6 (second first) or 5")
        texts = ["0", *parts] if len(parts) == 5 else parts
        self._values = [field.parse(text) for field, text in zip(FIELDS, texts, strict=True)]
        every_minute = all(
            len(values) == field.last - field.first + 1
            for field, values in zip(FIELDS[1:], self._values[1:], strict=True)
        )
        # The Functions host drops the monitor only where every occurrence is less than a minute from the last.
        self.monitored = not (every_minute and len(self._values[0]) > 1)

    def next(self, after: datetime) -> datetime:
        """Return the first matching time after `after`. Raises ValueError for an impossible date, for example 30
        February.
        """
        earliest = after.replace(microsecond=0) + timedelta(seconds=1)
        midnight = earliest.replace(hour=0, minute=0, second=0)
        for offset in range(HORIZON_DAYS):
            day = midnight + timedelta(days=offset)
            if self._has_day(day) and (found := self._time_on(day, earliest)):
                return found
        raise ValueError("no date matches it")

    def _has_day(self, day: datetime) -> bool:
        _, _, _, days, months, weekdays = self._values
        return day.month in months and day.day in days and day.isoweekday() % 7 in weekdays

    def _time_on(self, day: datetime, earliest: datetime) -> datetime | None:
        seconds, minutes, hours, *_ = self._values
        for hour in hours:
            if day.replace(hour=hour, minute=59, second=59) < earliest:
                continue
            for minute in minutes:
                for second in seconds:
                    if (moment := day.replace(hour=hour, minute=minute, second=second)) >= earliest:
                        return moment
        return None


class Interval:
    """A constant interval, counted from the last firing."""

    adjust_for_dst = False

    def __init__(self, period: timedelta) -> None:
        if period <= timedelta():
            raise ValueError("the interval must be longer than zero")
        self._period = period
        self.monitored = period >= timedelta(minutes=1)

    def next(self, after: datetime) -> datetime:
        return after + self._period


def parse(text: str) -> Schedule:
    """Read a timer's `schedule`: a TimeSpan if it is one word with colons, otherwise NCRONTAB. Raises ValueError."""
    if len(text.split()) == 1 and ":" in text:
        return Interval(timespan.parse(text))
    return Cron(text)
