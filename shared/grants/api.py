"""Requests and answers about grants."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from shared.grants import manage
from shared.grants.model import GRANT_ID, Grant, GrantTerms, May, Then, drop_prefix, grant_of
from shared.grants.ports import GRANTS
from shared.kernel.clock import Clock
from shared.kernel.encode import plain
from shared.kernel.errors import NotFound
from shared.kernel.reply import Caller
from shared.money.ports import MoneyPorts

Json = dict[str, Any]
GrantName = Annotated[str, Meta(pattern=f"^{GRANT_ID.pattern}$")]
Names = Annotated[list[Annotated[str, Meta(min_length=1, max_length=300)]], Meta(max_length=100)]
Budget = Annotated[float, Meta(ge=0, le=1e6, description="Dollars, for all runs together.")]
Until = Annotated[str, Meta(min_length=4, max_length=40, description="2026-01-31T18:00Z, or 18:00: the next, in UTC.")]
Runs = Annotated[int, Meta(ge=0, le=100_000, description="How many runs it may start in all; each trial is one.")]
AtOnce = Annotated[int, Meta(ge=0, le=100, description="How many of its runs may be in progress at the same time.")]
ThenField = Annotated[Then, Meta(description="What happens to runs in progress when budget or time is used up.")]


class GrantRequest(Struct, forbid_unknown_fields=True):
    """The terms of a new grant."""

    purpose: Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
    budget: Budget
    until: Until
    may: Annotated[list[May], Meta(max_length=10, description="What the program may do.")]
    routes: Names = []
    trainers: Names = []
    clusters: Names = []
    models: Annotated[Names, Meta(description="The models whose aliases it may move, with `may` promote.")] = []
    shares: Annotated[Names, Meta(description="What else it may see: runs/NAME, drops/ROUTE/NAME, models/NAME.")] = []
    runs: Runs = 100
    at_once: AtOnce = 4
    then: ThenField = Then.FINISH


class GrantChanges(Struct, forbid_unknown_fields=True):
    """The changes to a grant. A given list replaces the whole list."""

    budget: Budget | UnsetType = UNSET
    until: Until | UnsetType = UNSET
    may: list[May] | UnsetType = UNSET
    routes: Names | UnsetType = UNSET
    trainers: Names | UnsetType = UNSET
    clusters: Names | UnsetType = UNSET
    models: Names | UnsetType = UNSET
    shares: Names | UnsetType = UNSET
    runs: Runs | UnsetType = UNSET
    at_once: AtOnce | UnsetType = UNSET
    then: Then | UnsetType = UNSET


class GrantsQuery(Struct):
    open: Annotated[bool, Meta(description="Only grants under which runs may still start.")] = False


class RevokeQuery(Struct):
    then: Annotated[Then | UnsetType, Meta(description="Default: as the grant says.")] = UNSET


class DeedAnswer(Struct):
    at: datetime
    by: str
    by_id: str
    what: str


class InProgress(Struct):
    """A run that holds a part of the budget. `ended`: the run is over, but its nodes may still cost something."""

    run: str
    most: Annotated[float, Meta(description="Dollars that are reserved for it.")]
    spent: float
    ended: bool


class GrantAnswer(Struct):
    id: str
    purpose: str
    made_at: datetime
    by: str
    by_id: str
    budget: float
    until: datetime
    may: list[May]
    routes: list[str]
    trainers: list[str]
    clusters: list[str]
    models: list[str]
    shares: list[str]
    runs: int
    at_once: int
    then: Then
    spent: Annotated[float, Meta(description="Dollars that its runs have cost so far.")]
    reserved: Annotated[float, Meta(description="Dollars that its runs in progress may still cost, at most.")]
    left: Annotated[float, Meta(description="Dollars that a new run may cost, at most.")]
    runs_used: int
    runs_now: int
    over: Annotated[str, Meta(description="Why no run may start any more; '' while runs may start.")]
    revoked_at: datetime | None
    drops: Annotated[str, Meta(description="How the names of the grant's own drops begin.")]
    in_progress: list[InProgress]
    history: Annotated[list[DeedAnswer], Meta(description="Who created and changed it, oldest first.")]


class CreatedGrant(GrantAnswer):
    token: Annotated[str, Meta(description="The bearer token. It is shown once, and stored nowhere.")]


def list_grants(ports: MoneyPorts, query: GrantsQuery) -> Annotated[list[Json], list[GrantAnswer]]:
    now = ports.clock()
    grants = [grant for grant in ports.store(GRANTS).all() if not (query.open and grant.over(now))]
    return [shown(grant, now) for grant in grants]


def create_grant(ports: MoneyPorts, body: GrantRequest, caller: Caller) -> Annotated[Json, CreatedGrant]:
    values = {name: value for name, value in _values(ports.clock, body).items() if name != "purpose"}
    made = manage.create(ports, body.purpose, GrantTerms(**values), caller)
    return shown(made.grant, ports.clock()) | {"token": made.token}


def get_grant(ports: MoneyPorts, grant: GrantName) -> Annotated[Json, GrantAnswer]:
    return shown(manage.known(ports, grant), ports.clock())


def narrow_grant(
    ports: MoneyPorts, grant: GrantName, body: GrantChanges, caller: Caller
) -> Annotated[Json, GrantAnswer]:
    return shown(manage.narrow(ports, grant, _values(ports.clock, body), caller), ports.clock())


def extend_grant(
    ports: MoneyPorts, grant: GrantName, body: GrantChanges, caller: Caller
) -> Annotated[Json, GrantAnswer]:
    return shown(manage.extend(ports, grant, _values(ports.clock, body), caller), ports.clock())


def revoke_grant(
    ports: MoneyPorts, grant: GrantName, query: RevokeQuery, caller: Caller
) -> Annotated[Json, GrantAnswer]:
    return shown(manage.revoke(ports, grant, caller, query.then or None), ports.clock())


def get_own_grant(ports: MoneyPorts, caller: Caller) -> Annotated[Json, GrantAnswer]:
    name = grant_of(caller.person.id)
    if not name:
        raise NotFound("This request carries no token of a grant. Send it to /api/granted/grant with the token.")
    return shown(manage.known(ports, name), ports.clock())


def shown(grant: Grant, now: datetime) -> Json:
    terms = {name: plain(value) for name, value in to_builtins(grant.terms, builtin_types=(datetime,)).items()}
    progress = [
        {"run": name, "most": each.most, "spent": each.spent, "ended": each.until is not None}
        for name, each in grant.reserved.items()
    ]
    history = [{"at": plain(deed.at), "by": deed.by, "by_id": deed.by_id, "what": deed.what} for deed in grant.history]
    return {
        "id": grant.id,
        "purpose": grant.purpose,
        "made_at": plain(grant.made_at),
        "by": grant.by,
        "by_id": grant.by_id,
        **terms,
        "spent": grant.spent,
        "reserved": grant.in_progress,
        "left": grant.left,
        "runs_used": grant.runs,
        "runs_now": grant.at_once,
        "over": grant.over(now),
        "revoked_at": plain(grant.revoked_at),
        "drops": drop_prefix(grant.id),
        "in_progress": progress,
        "history": history,
    }


def _values(clock: Clock, body: GrantRequest | GrantChanges) -> Json:
    """Return the given fields, converted to the types of the terms."""
    names = body.__struct_fields__
    given = {name: value for name in names if (value := getattr(body, name)) is not UNSET}
    if "until" in given:
        given["until"] = manage.read_until(given["until"], clock())
    return {name: tuple(dict.fromkeys(value)) if isinstance(value, list) else value for name, value in given.items()}
