"""A grant: the rights of a program with a token, its budget, and its reservations.

One row holds the terms of a grant and its reservations. So a change of the terms and the admission of a run are decided
one after the other, under the etag of this row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from shared.kernel.parts import part
from shared.kernel.person import PROGRAM, Person

GRANT_ID = re.compile(r"[0-9a-f]{12}")
DROP = "grant-"  # begins the name of each drop of a grant, followed by the grant's id and a dash


class May(StrEnum):
    """A right that a grant gives."""

    READ = "read"  # see the grant's own things, and shared things
    SUBMIT = "submit"  # start runs on its routes and trainers, and write notes and tags on its own runs
    CANCEL = "cancel"  # cancel its own runs
    UPLOAD = "upload"  # upload its own drops to its routes
    LEASE = "lease"  # keep nodes warm after its runs
    PROMOTE = "promote"  # move aliases of its models to its own runs
    RUN_CODE = "run-code"  # run its own code on the nodes; the code can read all that the nodes can read


class Then(StrEnum):
    """What happens to running runs when the grant's budget or time is used up, or when the grant is revoked."""

    FINISH = "finish"
    CANCEL = "cancel"


@dataclass(frozen=True)
class GrantTerms:
    """What a grant allows: `budget` in dollars, at most `runs` runs, of which at most `at_once` at the same time.

    `shares` are things of other people that the program may see: runs/<name>, drops/<route>/<name>, models/<name>.
    `models` are the models whose aliases it may move.
    """

    budget: float = 0.0
    until: datetime | None = None
    may: tuple[May, ...] = ()
    routes: tuple[str, ...] = ()
    trainers: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    runs: int = 100
    at_once: int = 4
    then: Then = Then.FINISH


class Reservation(msgspec.Struct, frozen=True, array_like=True):
    """The amount reserved for a run: at most `most` dollars, of which `spent` are spent.

    A sweep reserves for all its trials: `runs` trials, of which `slots` run at the same time. Once the run has ended,
    `until` is the latest time at which its nodes are gone.
    """

    most: float
    at: datetime
    spent: float = 0.0
    slots: int = 1
    runs: int = 1
    until: datetime | None = None


class GrantDeed(msgspec.Struct, frozen=True, array_like=True):
    """One line of the grant's history: the change, and the person who made it."""

    at: datetime
    by: str
    by_id: str
    what: str


@dataclass(frozen=True)
class Grant:
    """A grant. `secret` is the SHA-256 of the token's secret, in hex.

    `settled` is the cost in dollars of the `ended` runs, whose reservations are over. `told` is the percentage of the
    budget that the last notice announced.
    """

    id: str
    purpose: str
    made_at: datetime
    by: str
    by_id: str
    secret: str
    terms: GrantTerms = part(GrantTerms)
    settled: float = 0.0
    ended: int = 0
    told: int = 0
    reserved: dict[str, Reservation] = field(default_factory=dict)
    revoked_at: datetime | None = None
    history: tuple[GrantDeed, ...] = ()

    @property
    def person(self) -> Person:
        return Person(f"{self.purpose} (grant {self.id})", f"{PROGRAM}{self.id}")

    @property
    def spent(self) -> float:
        """The dollars that the runs have cost so far."""
        return self.settled + sum(each.spent for each in self.reserved.values())

    @property
    def in_progress(self) -> float:
        """The greatest cost in dollars that the reserved runs may still add."""
        return sum(max(0.0, each.most - each.spent) for each in self.reserved.values())

    @property
    def left(self) -> float:
        return max(0.0, self.terms.budget - self.spent - self.in_progress)

    @property
    def at_once(self) -> int:
        """The number of runs that may hold nodes now."""
        return sum(each.slots for each in self.reserved.values() if each.until is None)

    @property
    def runs(self) -> int:
        return self.ended + sum(each.runs for each in self.reserved.values())

    def may(self, what: May) -> bool:
        return what in self.terms.may

    def over(self, now: datetime) -> str:
        """Return why no run may start any more; '' while runs may start."""
        if self.revoked_at:
            return f"Grant {self.id} was revoked at {_minute(self.revoked_at)}."
        if self.terms.until is None or now >= self.terms.until:
            return f"Grant {self.id} ended at {_minute(self.terms.until)}." if self.terms.until else "It never began."
        if self.spent >= self.terms.budget:
            return f"Grant {self.id} has spent ${self.spent:.2f}, all of its ${self.terms.budget:.2f}."
        return ""


def grant_of(owner_id: str) -> str:
    """Return the id of the grant whose program has this owner id; '' for a person."""
    name = owner_id.removeprefix(PROGRAM)
    return name if name != owner_id and GRANT_ID.fullmatch(name) else ""


def drop_prefix(grant: str) -> str:
    """Return the beginning of the names of the grant's drops."""
    return f"{DROP}{grant}-"


def grant_of_drop(name: str) -> str:
    """Return the id of the grant that owns the drop of this name; '' for a drop of a person."""
    rest = name.removeprefix(DROP)
    grant, dash, _ = rest.partition("-")
    return grant if rest != name and dash and GRANT_ID.fullmatch(grant) else ""


def listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _minute(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""
