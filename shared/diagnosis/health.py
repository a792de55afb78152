"""The health of a running run, as its row has it: what was found, who looks, and the chain of checks. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.runs.pulse import Ailment

EACH = timedelta(minutes=1)  # between two checks
VIEWED_FOR = timedelta(minutes=10)  # how long a look at the run keeps the checks going
NOTED_EACH = timedelta(minutes=5)  # how often the row says that the checks go on, and that somebody looks
LOST_AFTER = NOTED_EACH + 3 * EACH  # without such a note, the chain of checks is lost


@dataclass(frozen=True)
class RunHealth:
    """What is wrong with a running run, and the chain of checks that finds it.

    - `ailments`: what the last check found
    - `checked_at`: the time of a check at most NOTED_EACH before the last one
    - `viewed_at`: when somebody last looked, to NOTED_EACH
    - `chain`: the token of the chain of checks; '' if there is none
    - `acted_on`: the cause for which the run was ended, as its route says
    """

    ailments: tuple[Ailment, ...] = ()
    checked_at: datetime | None = None
    viewed_at: datetime | None = None
    chain: str = ""
    acted_on: str = ""

    def is_checked(self, now: datetime) -> bool:
        """Whether a chain of checks goes on."""
        return bool(self.chain) and self.checked_at is not None and now - self.checked_at <= LOST_AFTER

    def is_viewed(self, now: datetime) -> bool:
        """Whether somebody looked at the run within VIEWED_FOR."""
        return self.viewed_at is not None and now - self.viewed_at <= VIEWED_FOR

    def viewed(self, now: datetime) -> RunHealth:
        """The health after a look."""
        recent = self.viewed_at is not None and now - self.viewed_at < NOTED_EACH
        return self if recent else replace(self, viewed_at=now)

    def begun(self, chain: str, now: datetime) -> RunHealth:
        """The health with a new chain of checks, which ends the one before."""
        return replace(self, chain=chain, checked_at=now)

    def ended(self) -> RunHealth:
        """The health after the last check of a chain. What was found is not known to last."""
        return replace(self, chain="", ailments=())

    def checked(self, found: list[Ailment], now: datetime) -> RunHealth:
        """The health after a check. An ailment that was found before keeps its time; figures change at NOTED_EACH."""
        since = {(each.cause, each.name): each for each in self.ailments}
        kept = tuple(replace(each, since=_since(since.get((each.cause, each.name)), now)) for each in found)
        noted = self.checked_at is not None and now - self.checked_at < NOTED_EACH
        if noted and since.keys() == {(each.cause, each.name) for each in kept}:
            return self
        return replace(self, ailments=kept, checked_at=now)

    def new_since(self, before: RunHealth) -> list[Ailment]:
        """The ailments that `before` lacks."""
        known = {(each.cause, each.name) for each in before.ailments}
        return [each for each in self.ailments if (each.cause, each.name) not in known]


def _since(before: Ailment | None, now: datetime) -> datetime:
    return before.since if before and before.since else now
