"""A user's deadline for a run, as a time or a duration, and the stated duration of the work. Pure.

A request has fields for them, a job file the tags `done_by`, `within` and `takes`, and a route `within_seconds` and
`takes_seconds`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.jobs.route import Route
from shared.kernel.errors import Impossible
from shared.runs.intake.request import RunRequest

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"(\d{1,9})([smhd]?)")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class RequestedDate:
    """A requested date. At most one of `done_by` and `within_seconds` is set; 0 seconds mean "not set"."""

    done_by: datetime | None = None
    within_seconds: float = 0.0
    takes_seconds: float = 0.0

    def moment(self, now: datetime) -> datetime | None:
        """The deadline; None without a requested date. Raises Impossible for a deadline in the past."""
        if self.done_by is None:
            return now + timedelta(seconds=self.within_seconds) if self.within_seconds else None
        if self.done_by <= now:
            raise Impossible(f"done_by is {self.done_by:%Y-%m-%d %H:%M} UTC, which has passed.", "too_soon")
        return self.done_by

    def over(self, below: RequestedDate) -> RequestedDate:
        """This requested date, completed from the request below."""
        takes = self.takes_seconds or below.takes_seconds
        if self.done_by or self.within_seconds:
            return RequestedDate(self.done_by, self.within_seconds, takes)
        return RequestedDate(below.done_by, below.within_seconds, takes)


def date_of_request(request: RunRequest, now: datetime) -> RequestedDate:
    """The requested date in the request's own fields."""
    if request.done_by and request.within_seconds:
        raise Impossible("done_by and within_seconds both set the date; give only one.", "bad_date")
    done_by = moment(request.done_by, now) if request.done_by else None
    return RequestedDate(done_by, request.within_seconds or 0.0, request.takes_seconds or 0.0)


def date_of_route(route: Route) -> RequestedDate:
    return RequestedDate(None, route.within_seconds, route.takes_seconds)


def date_of_tags(tags: Mapping[str, str], now: datetime) -> RequestedDate:
    """The requested date in a job's tags. Raises Impossible for an invalid tag."""
    if tags.get("done_by") and tags.get("within"):
        raise Impossible("The tags done_by and within both set the date; keep only one.", "bad_date")
    done_by = moment(tags["done_by"], now) if tags.get("done_by") else None
    return RequestedDate(done_by, *(_span(name, tags[name]) if tags.get(name) else 0.0 for name in ("within", "takes")))


def moment(text: str, now: datetime) -> datetime:
    """Parse `2026-01-31T18:00`, with a zone or in UTC, or `18:00`, the next such time in UTC.

    Raises Impossible for any other text.
    """
    if clock := _CLOCK.fullmatch(text):
        at = now.astimezone(UTC).replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        return at if at > now else at + timedelta(days=1)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        words = f"done_by is {text[:40]!r}; write a date and time such as 2026-01-31T18:00+01:00, or 18:00 (UTC)."
        raise Impossible(words, "bad_date") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _span(name: str, text: str) -> float:
    match = _SPAN.fullmatch(text)
    if not match or not int(match[1]):
        raise Impossible(f"{name} is {text[:40]!r}; write seconds, or 90m, 6h, 2d.", "bad_date")
    return float(int(match[1]) * _UNITS[match[2] or "s"])
