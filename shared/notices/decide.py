"""Who is told what, and when a delivery is tried again. Decisions without I/O."""

from __future__ import annotations

from datetime import timedelta

from shared.kernel.errors import Impossible
from shared.notices.model import Kind, Notice, Subscription

TRIES = 24  # an endpoint that fails half of the time fails so often in a row once in 17 million deliveries
KEPT = timedelta(days=90)  # deliveries, for `notify log`; far longer than an event can be told of again
_FIRST, _LONGEST = 5.0, 3600.0  # seconds between two tries: doubling, up to an hour; all of them take 14 hours
CLAIM_SECONDS = 60.0  # one try holds a delivery so long at most: longer than a sender's timeouts together
EVICTED_OFTEN = 3  # a run is told of when it has lost its nodes so often, once
IDLE_TOO_LONG = timedelta(hours=1)
_TELL_FOR = timedelta(minutes=20)  # several sweeps' time, so that one that dies is made good by the next


def wants(subscription: Subscription, notice: Notice) -> bool:
    """Whether the subscription wants the notice. Tests are sent directly, not by this rule."""
    if notice.kind not in subscription.on:
        return False
    pairs = ((subscription.route, notice.route), (subscription.experiment, notice.experiment))
    return all(want in ("", has) for want, has in pairs)


def pause(tries: int, retry_after: float = 0.0) -> float:
    """Seconds until the next try, after so many. An endpoint may ask for more time, up to an hour."""
    return float(min(max(_FIRST * 2.0 ** (tries - 1), retry_after), _LONGEST))


def read_kinds(names: list[str]) -> tuple[Kind, ...]:
    """The kinds that someone asks for, without repeats. Raises Impossible, naming those that there are."""
    choices = [kind for kind in Kind if kind is not Kind.TEST]
    unknown = [name for name in names if name not in choices]
    if unknown or not names:
        raise Impossible(f"on is {', '.join(unknown) or 'empty'}; choose from {', '.join(choices)}.", "bad_kind")
    return tuple(kind for kind in choices if kind in names)


def crossed(before: int, after: int) -> bool:
    """Whether a run has now been evicted often, and had not before."""
    return before < EVICTED_OFTEN <= after


def is_idle_too_long(idle: timedelta) -> bool:
    """Whether to tell that a cluster is idle: for a while, so that whoever tells it may die."""
    return IDLE_TOO_LONG <= idle < IDLE_TOO_LONG + _TELL_FOR
