"""Event Grid's rules for retrying and abandoning a delivery, without I/O.

Waits grow as published: 10 s, 30 s, 1, 5, 10, 30 minutes, 1, 3, 6 hours, then every 12 hours, until the attempts or the
time to live are used up. Some answers end a delivery at once. All waits and the time to live are multiplied by a scale,
so that a test can run a day in a second. Azure also adds a small random part and slows down for endpoints that keep
failing; this emulator does neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus

RETRY_SECONDS = (10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
DEAD_LETTER_DELAY_SECONDS = 300  # between the last attempt and the dead-letter blob
DEAD_LETTER_RETRY_SECONDS = 60
DEAD_LETTER_PATIENCE_SECONDS = 4 * 3600  # the event is dropped if writing fails for this long
SUCCESS = range(200, 205)
NO_ANSWER = 0

OUTCOMES = {408: "TimedOut", 413: "PayloadTooLarge", 503: "Busy", NO_ANSWER: "SocketError"}


@dataclass(frozen=True)
class Rules:
    """The retry rules for the statuses of one kind of endpoint: statuses without a retry, and minimum delays in
    seconds for others."""

    never: frozenset[int]
    at_least: dict[int, int]


AZURE_RESOURCE = Rules(frozenset({400, 403, 413}), {401: 300, 404: 300, 408: 120, 503: 30})
WEBHOOK = Rules(frozenset({400, 401, 403, 413}), {408: 120, 503: 30})


@dataclass(frozen=True)
class Policy:
    """A subscription's retry policy, with the endpoint's rules and the time scale."""

    rules: Rules
    max_attempts: int = 30
    ttl_seconds: float = 1440 * 60
    scale: float = 1.0
    dead_letters: bool = False


@dataclass(frozen=True)
class Delivery:
    """The delivery of one event to one subscription. Times are Unix seconds. `reason` is why the delivery was
    abandoned."""

    id: int
    subscription: str
    body: str
    published: float
    due: float
    attempts: int = 0
    last_attempt: float = 0.0
    outcome: str = ""
    reason: str = ""


def outcome_name(status: int) -> str:
    """Return Event Grid's word for an HTTP status (0: no answer) in lastDeliveryOutcome."""
    if status in OUTCOMES:
        return OUTCOMES[status]
    if status >= 500 or status not in set(HTTPStatus):
        return "GenericError"
    return HTTPStatus(status).phrase.replace(" ", "").replace("-", "")


def expired(delivery: Delivery, policy: Policy, now: float) -> bool:
    """Return whether the time to live has passed. It is checked only before an attempt, and never before the first
    attempt."""
    return delivery.attempts > 0 and now - delivery.published > policy.ttl_seconds * policy.scale


def after_attempt(delivery: Delivery, status: int, policy: Policy, now: float) -> Delivery | None:
    """Return the delivery after an attempt with this `status`: None after a success, otherwise with its next
    attempt or abandoned."""
    if status in SUCCESS:
        return None
    tried = replace(delivery, attempts=delivery.attempts + 1, last_attempt=now, outcome=outcome_name(status))
    if status in policy.rules.never:
        return give_up(tried, f"UndeliverableDueToHttp{tried.outcome}", policy, now)
    if tried.attempts >= policy.max_attempts:
        return give_up(tried, "MaxDeliveryAttemptsExceeded", policy, now)
    wait = RETRY_SECONDS[min(tried.attempts, len(RETRY_SECONDS)) - 1]
    wait = max(wait, policy.rules.at_least.get(status, 0))
    return replace(tried, due=now + wait * policy.scale)


def give_up(delivery: Delivery, reason: str, policy: Policy, now: float) -> Delivery | None:
    """Return the delivery for dead-lettering, or None if the subscription has no dead-letter destination."""
    if not policy.dead_letters:
        return None
    return replace(delivery, reason=reason, due=now + DEAD_LETTER_DELAY_SECONDS * policy.scale)


def after_dead_letter(delivery: Delivery, status: int, policy: Policy, now: float) -> Delivery | None:
    """Return the delivery for another attempt to write the dead letter; None if it is written, or after four hours
    of failures."""
    patience = (DEAD_LETTER_DELAY_SECONDS + DEAD_LETTER_PATIENCE_SECONDS) * policy.scale
    if status in SUCCESS or now - delivery.last_attempt > patience:
        return None
    return replace(delivery, due=now + DEAD_LETTER_RETRY_SECONDS * policy.scale)
