"""The health of a running run in its row: the ailments, the viewers, and the chain of checks. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.runs.pulse import Ailment

EACH = timedelta(minutes=1)  # between two checks
VIEWED_FOR = timedelta(minutes=10)  # how long one view of the run keeps the checks active
NOTED_EACH = timedelta(minutes=5)  # how often the row records that checks are active, and that somebody views the run
LOST_AFTER = NOTED_EACH + 3 * EACH  # without such a note, the chain of checks is lost
CONFIRMED_EACH = timedelta(minutes=20)  # how often the row records that viewers' checks still find the same
STALE_AFTER = 2 * CONFIRMED_EACH  # ailments that no check has confirmed for this time no longer count


@dataclass(frozen=True)
class RunHealth:
    """The ailments of a running run, and the chain of checks that finds them.

    - `ailments`: the findings of the last check
    - `checked_at`: the time of a check at most NOTED_EACH before the last check
    - `viewed_at`: when somebody last viewed the run, to NOTED_EACH
    - `chain`: the token of the chain of checks; '' if there is none
    - `acted_on`: the cause for which the run was ended, by the rule of its route
    """

    ailments: tuple[Ailment, ...] = ()
    checked_at: datetime | None = None
    viewed_at: datetime | None = None
    chain: str = ""
    acted_on: str = ""

    def is_checked(self, now: datetime) -> bool:
        """Return whether a chain of checks is active."""
        return bool(self.chain) and self.checked_at is not None and now - self.checked_at <= LOST_AFTER

    def is_stale(self, now: datetime) -> bool:
        """Return whether no check has confirmed the ailments for STALE_AFTER."""
        return bool(self.ailments) and (self.checked_at is None or now - self.checked_at > STALE_AFTER)

    def is_viewed(self, now: datetime) -> bool:
        """Return whether somebody viewed the run within VIEWED_FOR."""
        return self.viewed_at is not None and now - self.viewed_at <= VIEWED_FOR

    def viewed(self, now: datetime) -> RunHealth:
        """Return the health after somebody viewed the run."""
        recent = self.viewed_at is not None and now - self.viewed_at < NOTED_EACH
        return self if recent else replace(self, viewed_at=now)

    def begun(self, chain: str, now: datetime) -> RunHealth:
        """Return the health with a new chain of checks, which ends the previous chain."""
        return replace(self, chain=chain, checked_at=now)

    def ended(self) -> RunHealth:
        """Return the health after the last check of a chain, without ailments, because nothing confirms them any
        more.
        """
        return replace(self, chain="", ailments=())

    def checked(self, found: list[Ailment], now: datetime) -> RunHealth:
        """Return the health after a check. A known ailment keeps its start time; figures change only every
        NOTED_EACH.
        """
        since = {(each.cause, each.name): each for each in self.ailments}
        kept = tuple(replace(each, since=_since(since.get((each.cause, each.name)), now)) for each in found)
        noted = self.checked_at is not None and now - self.checked_at < NOTED_EACH
        if noted and since.keys() == {(each.cause, each.name) for each in kept}:
            return self
        return replace(self, ailments=kept, checked_at=now)

    def new_since(self, before: RunHealth) -> list[Ailment]:
        """Return the ailments that `before` lacks."""
        known = {(each.cause, each.name) for each in before.ailments}
        return [each for each in self.ailments if (each.cause, each.name) not in known]


def _since(before: Ailment | None, now: datetime) -> datetime:
    return before.since if before and before.since else now
