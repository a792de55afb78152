"""Decide the receivers of a notice, and the time of a delivery's next try. No I/O."""

from __future__ import annotations

from datetime import timedelta

from shared.kernel.errors import Impossible
from shared.notices.model import Notice, NoticeKind, Subscription

TRIES = 24  # an endpoint that fails half of the time fails 24 times in a row once in 17 million deliveries
KEPT = timedelta(days=90)  # deliveries, for `notify log`; far longer than an event can be repeated
_FIRST, _LONGEST = 5.0, 3600.0  # seconds between two tries: doubling, up to an hour; all tries take 14 hours
CLAIM_SECONDS = 60.0  # the longest that one try holds a delivery: longer than all timeouts of a sender together
EVICTED_OFTEN = 3  # evictions of a run after which its subscribers are notified, once
IDLE_TOO_LONG = timedelta(hours=1)
_TELL_FOR = timedelta(minutes=20)  # the time of several sweeps, so that the next sweep makes up for one that crashed


def wants(subscription: Subscription, notice: Notice) -> bool:
    """Return whether the subscription wants the notice. Test notices are sent directly, not by this rule."""
    if notice.kind not in subscription.on:
        return False
    pairs = ((subscription.route, notice.route), (subscription.experiment, notice.experiment))
    return all(want in ("", has) for want, has in pairs)


def pause(tries: int, retry_after: float = 0.0) -> float:
    """Return the seconds until the next try, after `tries` tries. An endpoint may ask for more time, up to an hour."""
    return float(min(max(_FIRST * 2.0 ** (tries - 1), retry_after), _LONGEST))


def read_kinds(names: list[str]) -> tuple[NoticeKind, ...]:
    """Return the requested kinds, without repeats. Raises Impossible with the allowed kinds."""
    choices = [kind for kind in NoticeKind if kind is not NoticeKind.TEST]
    unknown = [name for name in names if name not in choices]
    if unknown or not names:
        raise Impossible(f"on is {', '.join(unknown) or 'empty'}; choose from {', '.join(choices)}.", "bad_kind")
    return tuple(kind for kind in choices if kind in names)


def crossed(before: int, after: int) -> bool:
    """Return whether a run has just reached EVICTED_OFTEN evictions."""
    return before < EVICTED_OFTEN <= after


def is_idle_too_long(idle: timedelta) -> bool:
    """Return whether to notify of an idle cluster: for _TELL_FOR, because a crash of one sweep must not lose the
    notice.
    """
    return IDLE_TOO_LONG <= idle < IDLE_TOO_LONG + _TELL_FOR
