"""The published retry schedule as pure functions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulators.eventgrid import delivery
from emulators.eventgrid.delivery import AZURE_RESOURCE, WEBHOOK, Delivery, Policy, Rules

NEW = Delivery(1, "s", "{}", published=1000.0, due=1000.0)
POLICY = Policy(WEBHOOK, dead_letters=True)


def waits(policy: Policy, status: int = 500) -> list[float]:
    """Return the waits between attempts until the delivery ends, including the time to live."""
    result: list[float] = []
    current, now = NEW, NEW.due
    while not delivery.expired(current, policy, now):
        left = delivery.after_attempt(current, status, policy, now)
        assert left is not None
        if left.reason:
            return [*result, -1.0]
        result.append(left.due - now)
        current, now = left, left.due
    return result


def test_the_schedule_is_the_published_one() -> None:
    """The waits are 10 s, 30 s, 1, 5, 10, 30 minutes and 1, 3, 6, 12 hours. The time to live of one day ends the
    schedule."""
    assert waits(POLICY) == [10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 43200]


def test_the_scale_shortens_everything_alike() -> None:
    """With a scale the same attempts are made in a fraction of the time."""
    assert waits(replace(POLICY, scale=0.001)) == pytest.approx([wait / 1000 for wait in waits(POLICY)])


def test_attempts_are_limited() -> None:
    """The delivery ends after the last allowed attempt."""
    assert waits(replace(POLICY, max_attempts=3)) == [10, 30, -1.0]
    left = delivery.after_attempt(NEW, 500, replace(POLICY, max_attempts=1), 1000.0)
    assert left is not None
    assert (left.reason, left.attempts, left.outcome) == ("MaxDeliveryAttemptsExceeded", 1, "GenericError")


def test_time_to_live_limits() -> None:
    """An event beyond its time to live is not retried. The age is checked only before an attempt."""
    assert waits(replace(POLICY, ttl_seconds=60)) == [10, 30, 60]
    assert not delivery.expired(NEW, POLICY, NEW.due + 10 * POLICY.ttl_seconds)


@pytest.mark.parametrize(
    ("rules", "never"), [(AZURE_RESOURCE, {400, 403, 413}), (WEBHOOK, {400, 401, 403, 413})], ids=["queue", "webhook"]
)
def test_final_answers_get_no_retry(rules: Rules, never: set[int]) -> None:
    """Some statuses end a delivery at once, and others never do."""
    policy = replace(POLICY, rules=rules)
    final = set()
    for status in (*range(300, 600), 0):
        left = delivery.after_attempt(NEW, status, policy, 1000.0)
        assert left is not None
        if left.reason:
            final.add(status)
    assert final == never


@pytest.mark.parametrize(("status", "wait"), [(401, 300), (404, 300), (408, 120), (503, 30), (500, 10), (0, 10)])
def test_some_statuses_wait_longer(status: int, wait: float) -> None:
    """A queue that is missing or not writable is retried after five minutes, as in Azure."""
    left = delivery.after_attempt(NEW, status, replace(POLICY, rules=AZURE_RESOURCE), 1000.0)
    assert left is not None
    assert left.due == 1000.0 + wait


@pytest.mark.parametrize("status", [200, 201, 202, 203, 204])
def test_only_200_to_204_are_success(status: int) -> None:
    """Only the statuses 200 to 204 complete a delivery."""
    assert delivery.after_attempt(NEW, status, POLICY, 1000.0) is None


def test_dead_letters_wait_five_minutes_and_are_tried_for_four_hours() -> None:
    """The dead letter is written five minutes after the last attempt. If writing fails for four hours, the event is
    dropped."""
    left = delivery.after_attempt(NEW, 400, POLICY, 1000.0)
    assert left is not None
    assert left.due == 1300.0
    tries = 0
    while left is not None:
        tries, now = tries + 1, left.due
        left = delivery.after_dead_letter(left, 404, POLICY, now)
    assert 1000.0 + 4 * 3600 < now < 1000.0 + 4.2 * 3600
    assert tries > 200


def test_without_a_place_for_dead_letters_the_event_is_dropped() -> None:
    """Without a dead-letter destination the event is dropped when its delivery ends."""
    assert delivery.after_attempt(NEW, 400, replace(POLICY, dead_letters=False), 1000.0) is None


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (408, "TimedOut"),
        (413, "PayloadTooLarge"),
        (503, "Busy"),
        (500, "GenericError"),
        (799, "GenericError"),
        (0, "SocketError"),
    ],
)
def test_outcomes_have_event_grids_names(status: int, name: str) -> None:
    """lastDeliveryOutcome is one of Event Grid's words."""
    assert delivery.outcome_name(status) == name
