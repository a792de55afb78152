"""Schedules, time spans and the status of timers, as pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from emulators.host import timespan
from emulators.host.timers import schedule
from emulators.host.timers.status import NEVER, Status, after_run, at_start

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)  # a Saturday


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "following"),
    [
        ("0 */5 * * * *", "2026-11-21 12:05:00"),
        ("*/5 * * * *", "2026-11-21 12:05:00"),  # five fields: second 0
        ("30 0 12 * * *", "2026-11-21 12:00:30"),
        ("0 0 12 * * *", "2026-11-22 12:00:00"),  # strictly after
        ("0 0 4 * * Mon-Fri", "2026-11-23 04:00:00"),
        ("0 0 4 13 * Fri", "2027-08-13 04:00:00"),  # day AND day of week: classic cron would fire tomorrow week
        ("0 0 0 29 2 1", "2044-02-29 00:00:00"),
        ("0 0 0 1 Jan,jul *", "2027-01-01 00:00:00"),
        ("0 10-30/10 12 * * *", "2026-11-21 12:10:00"),
        ("0 30/15 * * * *", "2026-11-21 12:30:00"),
        ("0 0 0 * * 0", "2026-11-22 00:00:00"),  # Sunday is 0
        ("0 5-1 * * * *", "2026-11-21 12:01:00"),  # NCrontab swaps the ends
        ("00:05:00", "2026-11-21 12:05:00"),
        ("1.00:00:00", "2026-11-22 12:00:00"),
    ],
)
def test_next(expression: str, following: str) -> None:
    """The first firing after noon is computed from NCRONTAB or the interval."""
    assert schedule.parse(expression).next(NOON) == at(following)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("", "0 fields"),
        ("@hourly", "1 fields"),
        ("* * * * * * *", "7 fields"),
        ("0 0 0 ? * *", "'?' is not understood in the field day"),
        ("0 0 0 L * *", "'L'"),
        ("0 0 0 15W * *", "'15W'"),
        ("0 0 0 * * Fri#2", "'Fri#2'"),
        ("0 0 0 * * 7", "outside 0-6 in the field day of week"),
        ("60 0 0 * * *", "outside 0-59 in the field second"),
        ("*/0 * * * * *", "'*/0'"),
        ("0 0 24:00 * * *", "'24:00'"),
        ("24:00:00", "hours end at 23"),
        ("00:00:00", "longer than zero"),
    ],
)
def test_what_is_no_schedule(expression: str, complaint: str) -> None:
    """Other dialects of cron, and values out of bounds, are errors with the name of the part."""
    with pytest.raises(ValueError, match=complaint.replace("?", r"\?").replace("*", r"\*")):
        schedule.parse(expression)


def test_a_date_that_never_comes() -> None:
    """30 February is an error, not an endless search."""
    with pytest.raises(ValueError, match="no date matches"):
        schedule.parse("0 0 0 30 2 *").next(NOON)


@pytest.mark.parametrize(
    ("expression", "monitored"),
    [
        ("*/5 * * * * *", False),
        ("0 * * * * *", True),
        ("* */30 * * * *", True),
        ("* * 12 * * Mon", True),
        ("00:00:59", False),
        ("00:01:00", True),
    ],
)
def test_only_the_most_frequent_timers_go_unmonitored(expression: str, monitored: bool) -> None:
    """The host keeps no status if all firings are less than a minute apart."""
    assert schedule.parse(expression).monitored is monitored


@pytest.mark.parametrize(
    ("text", "seconds"), [("00:00:00.250", 0.25), ("01:30", 5400), ("2.03:04:05", 183845), ("00:30:00", 1800)]
)
def test_time_spans(text: str, seconds: float) -> None:
    """Time spans have the format [d.]hh:mm[:ss[.f]]."""
    assert timespan.parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["5", "00:60:00", "00:00:60", "-00:00:01", "1 hour"])
def test_what_is_no_time_span(text: str) -> None:
    """A bare number is refused, because .NET would read 5 as five days."""
    with pytest.raises(ValueError, match="not a time span"):
        timespan.parse(text)


HOURLY = schedule.parse("0 0 * * * *")


def test_a_new_timer_waits_for_its_time() -> None:
    """Without a status the timer is not past due, and the first status is written."""
    start = at_start(HOURLY, None, NOON)
    assert (start.status, start.past_due, start.changed) == (Status(NEVER, at("2026-11-21 13:00"), NOON), False, True)


def test_a_missed_firing_is_past_due() -> None:
    """If the saved next firing has passed, the timer runs at once."""
    saved = Status(at("2026-11-21 09:00"), at("2026-11-21 10:00"), at("2026-11-21 09:00"))
    start = at_start(HOURLY, saved, NOON)
    assert (start.status, start.past_due, start.changed) == (saved, True, False)


def test_a_changed_schedule_is_not_past_due() -> None:
    """A saved next firing that is not in the schedule comes from an older schedule. It is computed again, without a
    run."""
    saved = Status(at("2026-11-21 09:00"), at("2026-11-21 09:17"), at("2026-11-21 09:00"))
    start = at_start(HOURLY, saved, NOON)
    assert (start.status.next, start.past_due, start.changed) == (at("2026-11-21 13:00"), False, True)


def test_an_early_clock_does_not_fire_twice() -> None:
    """A run that starts slightly early counts from its scheduled time."""
    status = Status(NEVER, at("2026-11-21 13:00"), NOON)
    following = after_run(HOURLY, status, at("2026-11-21 12:59:59.990"), scheduled=True)
    assert (following.last, following.next) == (at("2026-11-21 13:00"), at("2026-11-21 14:00"))


def test_after_an_overrun_one_firing_is_caught_up() -> None:
    """A late run counts from its start. After an overrun the next firing is in the past and runs immediately; other
    missed firings are skipped."""
    status = Status(NEVER, at("2026-11-21 09:00"), at("2026-11-21 08:00"))
    following = after_run(HOURLY, status, at("2026-11-21 10:30"), scheduled=True)
    assert following.next == at("2026-11-21 11:00")


def test_the_status_survives_its_blob() -> None:
    """A written status is read back unchanged, including .NET's seven digits."""
    status = Status(NEVER, at("2026-11-21 13:00"), NOON)
    assert Status.from_json(status.to_json()) == status
    dotnet = (
        '{"Last":"2026-11-21T12:00:00.1234567+00:00","Next":"2026-11-21T13:00:00Z","LastUpdated":"0001-01-01T00:00:00"}'
    )
    assert Status.from_json(dotnet).updated == NEVER


@pytest.mark.parametrize("text", ["[]", "{}", '{"Last": 1, "Next": 2, "LastUpdated": 3}'])
def test_what_is_no_status(text: str) -> None:
    """A blob with other content is an error, which the listener treats as a missing status."""
    with pytest.raises(ValueError, match="not a timer status"):
        Status.from_json(text)
