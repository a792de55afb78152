"""Grants: a program may spend a limited amount, on named things, until a set time.

model.py is the record, decide.py makes the decisions, admission.py reserves before each run, keep.py settles from the
books, manage.py changes grants, and guest.py decides what a program may call and see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.grants.facts import GrantUsed
from shared.grants.model import grant_of_drop
from shared.grants.reactions import announce_use, shrink_reservation
from shared.kernel.drop_key import DropKey
from shared.kernel.person import NOBODY, PROGRAM, Person
from shared.runs import facts as runs
from shared.runs.features import Feature
from shared.runs.model import Run
from shared.runs.ports import Refusal

if TYPE_CHECKING:
    from shared.kernel.guest import Guest


def guest_of(ports: Any, token: str) -> Guest | None:
    from shared.grants import guest  # the rules are imported with the first token, not at the start of the app

    return guest.guest_of(ports, token)


def reserve(ports: Any, run: Run) -> None:
    from shared.grants import admission

    admission.reserve(ports, run)


def release(ports: Any, run: Run) -> None:
    from shared.grants import admission

    admission.release(ports, run)


def refusal(ports: Any, run: Run) -> Refusal | None:
    from shared.grants import admission

    return admission.refusal(ports, run)


def keep(ports: Any) -> None:
    from shared.grants import keep

    keep.keep_grants(ports)


def owner_of_drop(drop: DropKey) -> Person:
    """Return the grant that owns this drop. Only the grant's program gets upload addresses for the drop."""
    grant = grant_of_drop(drop.name)
    return Person(f"grant {grant}", f"{PROGRAM}{grant}") if grant else NOBODY


FEATURE = Feature(
    reactions={runs.RunEnded: (shrink_reservation,), GrantUsed: (announce_use,)},
    guest_of=guest_of,
    reserve=reserve,
    release=release,
    refusal=refusal,
    keep_books=keep,
    owner_of_drop=owner_of_drop,
)
