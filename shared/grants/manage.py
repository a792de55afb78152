"""Create, narrow, extend and revoke grants. The grant's history names the person and the time of each change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from shared.grants.model import Grant, GrantDeed, GrantTerms, May, Then, listed
from shared.grants.ports import GRANTS
from shared.grants.token import new_token
from shared.jobs.readers.trainer import trainer_names
from shared.jobs.route import Routes
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Conflict, Forbidden, Impossible, NotFound
from shared.kernel.names import COMPUTE, NAME
from shared.kernel.operation import CODER, ROLES
from shared.kernel.parsing import read_time
from shared.kernel.reply import Caller
from shared.kernel.suggest import chosen
from shared.kernel.versioned import Stored
from shared.money.ports import MoneyPorts

LONGEST = timedelta(days=92)  # from its creation until its end; only new grants last longer
MOST_DEEDS = 50  # lines of the history; the first line and the newest lines stay
SHARE = re.compile(r"(?:runs/[^/]+|models/[^/]+|drops/[^/]+/[^/]+)")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_LISTS = ("may", "routes", "trainers", "clusters", "models", "shares")
_NUMBERS = ("budget", "runs", "at_once")


@dataclass(frozen=True)
class Created:
    """A new grant and its token. The token can't be read again."""

    grant: Grant
    token: str


def create(ports: MoneyPorts, purpose: str, terms: GrantTerms, caller: Caller) -> Created:
    """Create a grant. Raises Forbidden if the grant would exceed the caller's own rights or money."""
    now = ports.clock()
    _check(ports, terms, caller, now, now)
    made = new_token()
    deed = GrantDeed(now, caller.person.name, caller.person.id, f"created with ${terms.budget:.2f}")
    grant = Grant(made.grant, purpose, now, caller.person.name, caller.person.id, made.digest, terms, history=(deed,))
    ports.store(GRANTS).add(grant)
    return Created(grant, made.token)


def narrow(ports: MoneyPorts, name: str, changes: Mapping[str, Any], caller: Caller) -> Grant:
    """Narrow the terms of a grant. Raises Impossible for a change that would add something."""

    def change(grant: Grant, _: datetime) -> tuple[GrantTerms, str]:
        after = replace(grant.terms, **changes)
        if beyond := _added(grant.terms, after):
            raise Impossible(
                f"{listed(beyond)} would become more than grant {name} has. Use `grant extend`.", "not_narrower"
            )
        return after, "narrowed"

    return _changed(ports, name, caller, change)


def extend(ports: MoneyPorts, name: str, changes: Mapping[str, Any], caller: Caller) -> Grant:
    """Extend the terms of a grant, within the caller's own rights. Raises Impossible for a change that would remove
    something.
    """

    def change(grant: Grant, now: datetime) -> tuple[GrantTerms, str]:
        after = replace(grant.terms, **changes)
        if less := _added(after, grant.terms):
            raise Impossible(
                f"{listed(less)} would become less than grant {name} has. Use `grant narrow`.", "not_wider"
            )
        _check(ports, after, caller, grant.made_at, now)
        return after, "extended"

    return _changed(ports, name, caller, change)


def revoke(ports: MoneyPorts, name: str, caller: Caller, then: Then | None = None) -> Grant:
    """End a grant now. `then` decides about the runs in progress. A repeat changes nothing."""

    def write(stored: Stored[Grant] | None) -> Grant:
        grant, now = _known(stored, name).value, ports.clock()
        if grant.revoked_at:
            return grant
        terms = replace(grant.terms, then=then) if then else grant.terms
        after = replace(_with_deed(grant, caller, now, "revoked"), terms=terms, revoked_at=now)
        return ports.store(GRANTS).replace(_known(stored, name), after).value

    return compare_and_set(ports.clock, f"Grant {name}", lambda: ports.store(GRANTS).get(name), write)


def known(ports: MoneyPorts, name: str) -> Grant:
    """Return the grant. Raises NotFound."""
    return _known(ports.store(GRANTS).get(name), name).value


def read_until(text: str, now: datetime) -> datetime:
    """Return a future moment from a time, or from 18:00, which means the next 18:00 in UTC. Raises Impossible."""
    if clock := _CLOCK.fullmatch(text.strip()):
        at = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        return at if at > now else at + timedelta(days=1)
    try:
        return read_time(text)
    except Impossible as exc:
        raise Impossible(f"until is {text[:40]!r}; write 18:00 or 2026-01-31T18:00Z.", "bad_time") from exc


def _changed(
    ports: MoneyPorts, name: str, caller: Caller, change: Callable[[Grant, datetime], tuple[GrantTerms, str]]
) -> Grant:
    def write(stored: Stored[Grant] | None) -> Grant:
        grant, now = _known(stored, name).value, ports.clock()
        if grant.revoked_at:
            raise Conflict(f"Grant {name} is revoked, and stays so. Create another one.", "revoked")
        terms, what = change(grant, now)
        if terms == grant.terms:
            return grant
        after = replace(_with_deed(grant, caller, now, f"{what}: {_words(grant.terms, terms)}"), terms=terms)
        after = replace(after, told=min(after.told, int(100 * after.spent / terms.budget) if terms.budget else 100))
        return ports.store(GRANTS).replace(_known(stored, name), after).value

    return compare_and_set(ports.clock, f"Grant {name}", lambda: ports.store(GRANTS).get(name), write)


def _known(stored: Stored[Grant] | None, name: str) -> Stored[Grant]:
    if stored is None:
        raise NotFound(f"There is no grant {name[:80]!r}.")
    return stored


def _with_deed(grant: Grant, caller: Caller, now: datetime, what: str) -> Grant:
    deeds = (*grant.history, GrantDeed(now, caller.person.name, caller.person.id, what[:500]))
    return replace(grant, history=(deeds[0], *deeds[1:][1 - MOST_DEEDS :]))


def _added(before: GrantTerms, after: GrantTerms) -> list[str]:
    """Return the names of the terms that are wider in `after`."""
    more = [name for name in _NUMBERS if getattr(after, name) > getattr(before, name)]
    more += [name for name in _LISTS if set(getattr(after, name)) - set(getattr(before, name))]
    return more + (["until"] if after.until and before.until and after.until > before.until else [])


def _words(before: GrantTerms, after: GrantTerms) -> str:
    names = [each.name for each in fields(GrantTerms) if getattr(before, each.name) != getattr(after, each.name)]
    return "; ".join(f"{name} {_text(getattr(before, name))} -> {_text(getattr(after, name))}" for name in names)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return listed(map(str, value)) if isinstance(value, tuple) else str(value)


def _check(ports: MoneyPorts, terms: GrantTerms, caller: Caller, made_at: datetime, now: datetime) -> None:
    """Raise Forbidden for terms beyond the caller's own rights, and Impossible for invalid terms."""
    most = largest(ports.money.grants, caller.role)
    if terms.budget > most:
        raise Forbidden(
            f"With the role {caller.role} you may create grants of up to ${most:.2f}, and this one has "
            f"${terms.budget:.2f}. The administrator sets this in the money file, under grants."
        )
    if May.RUN_CODE in terms.may and caller.role != CODER:
        raise Forbidden(f"A grant that may run code needs the role {CODER} of its creator.")
    if terms.until is None or terms.until <= now:
        raise Impossible("until must be in the future.", "bad_time")
    if terms.until - made_at > LONGEST:
        raise Impossible(
            f"A grant may last {LONGEST.days} days in all, until {made_at + LONGEST:%Y-%m-%d}.", "too_long"
        )
    _check_names(ports.routes, ports.trainers, terms)


def _check_names(routes: Routes, trainers: Path, terms: GrantTerms) -> None:
    for route in terms.routes:
        chosen("route", route, routes)
    for trainer in terms.trainers:
        chosen("trainer", trainer, trainer_names(trainers))
    for cluster in terms.clusters:
        if not COMPUTE.fullmatch(cluster):
            raise Impossible(f"{cluster[:80]!r} can't be the name of a cluster.", "bad_name")
    for model in terms.models:
        if not NAME.fullmatch(model):
            raise Impossible(f"{model[:80]!r} can't be the name of a model.", "bad_name")
    for share in terms.shares:
        if not SHARE.fullmatch(share):
            words = f"{share[:80]!r} can't be shared; name runs/<name>, drops/<route>/<name> or models/<name>."
            raise Impossible(words, "bad_name")
    if {May.SUBMIT, May.UPLOAD} & set(terms.may) and not terms.clusters:
        raise Impossible("Name the clusters on which the grant's runs may train.", "no_clusters")


def largest(sizes: Mapping[str, float], role: str) -> float:
    """Return the largest budget of a grant that a person with this role may create, in dollars."""
    held = ROLES[: ROLES.index(role) + 1] if role in ROLES else ()
    return max((sizes.get(each, 0.0) for each in held), default=0.0)
