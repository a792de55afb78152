"""Bicep's functions of dates. In a duration, a month is 30 days and a year 365 days, as in .NET's XmlConvert."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

DURATION = re.compile(
    r"(-)?P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
)
# .NET's words for the parts of a date, and Python's.
PARTS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
SORTABLE = "yyyy-MM-ddTHH:mm:ssZ"


def date_time_add(base: str, duration: str, form: str = SORTABLE) -> str:
    moment = datetime.fromisoformat(base) + _length(duration)
    return moment.strftime(re.sub("|".join(PARTS), lambda match: PARTS[match[0]], form))


def from_epoch(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_epoch(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp())


def _length(duration: str) -> timedelta:
    match = DURATION.fullmatch(duration)
    if not match or duration in ("P", "-P"):
        raise ValueError(f"{duration!r} is not a duration such as P1D or PT2H")
    years, months, days, hours, minutes, seconds = (float(part or 0) for part in match.groups()[1:])
    length = timedelta(years * 365 + months * 30 + days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if match[1] else length


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dateTimeAdd": date_time_add,
    "dateTimeFromEpoch": from_epoch,
    "dateTimeToEpoch": to_epoch,
}
