"""The commands grant create, list, show, narrow, extend and revoke."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from .. import show
from ..results import prints
from ..session import Session, command_of
from . import values

Name = Annotated[str, Argument(metavar="ID", help="A grant, as `grant list` shows it.")]
Purpose = Annotated[str, Option("--for", metavar="TEXT", help="What the grant is for, such as 'nightly search'.")]
Budget = Annotated[float | None, Option("--budget", min=0, metavar="DOLLARS", help="For all its runs together.")]
Until = Annotated[
    str, Option("--until", metavar="TIME", help="When the last run may start: 18:00, 8h, or 2026-01-31T18:00.")
]
May = Annotated[
    str,
    Option(
        "--may",
        metavar="LIST",
        help="What the program may do: read, submit, cancel, upload, lease, promote, run-code.",
    ),
]
Routes = Annotated[str, Option("--routes", metavar="LIST", help="The routes on which it may train.")]
Trainers = Annotated[str, Option("--trainers", metavar="LIST", help="The trainers that it may use.")]
Clusters = Annotated[str, Option("--clusters", metavar="LIST", help="The clusters on which it may train.")]
Models = Annotated[str, Option("--models", metavar="LIST", help="The models whose aliases it may move.")]
Shares = Annotated[
    str, Option("--shares", metavar="LIST", help="What else it may see: runs/NAME, drops/ROUTE/NAME, models/NAME.")
]
RunsInAll = Annotated[int | None, Option("--runs", min=0, metavar="N", help="How many runs it may start in all.")]
AtOnce = Annotated[int | None, Option("--at-once", min=0, metavar="N", help="How many of them at the same time.")]
Then = Annotated[
    str,
    Option("--then", metavar="WHAT", help="Runs in progress when budget or time is used up: finish (default), cancel."),
]
LISTS = ("may", "routes", "trainers", "clusters", "models", "shares")


@command_of("grant")
@prints("POST grants")
def grant_create(
    session: Session,
    purpose: Purpose,
    budget: Annotated[float, Option("--budget", min=0, metavar="DOLLARS", help="For all its runs together.")],
    until: Until,
    may: May = "read,submit,cancel",
    routes: Routes = "",
    trainers: Trainers = "",
    clusters: Clusters = "",
    models: Models = "",
    shares: Shares = "",
    runs: RunsInAll = None,
    at_once: AtOnce = None,
    then: Then = "",
) -> None:
    """Let another program submit runs within a budget, a scope and a time limit.

    Prints the id of the grant and its token. The token is shown once: store it where the program reads
    TRAINYARD_TOKEN. Lists are separated by commas.

    Example: trainyard grant create --for nightly --budget 20 --until 18:00 --routes mnist --clusters cpu-cluster
    """
    given = {"purpose": purpose, "budget": budget, "until": until, "may": may, "routes": routes, "trainers": trainers}
    given |= {"clusters": clusters, "models": models, "shares": shares, "runs": runs, "at_once": at_once, "then": then}
    made = session.api.post("grants", body=_changes(given))
    session.print_result(made, f"{made['id']}\n{made['token']}")
    session.remark("The token is shown once. The program sends it, or reads it as TRAINYARD_TOKEN.", "dim")


@command_of("grant")
@prints("GET grants")
def grant_list(
    session: Session,
    is_open: Annotated[bool, Option("--open", help="Only grants under which runs may still start.")] = False,
) -> None:
    """List the grants, with what they have spent, reserved and left.

    Example: trainyard grant list --open
    """
    grants: Any = session.api.get("grants", open="true" if is_open else None)
    session.print_result(grants, show.grants.many(grants))


@command_of("grant")
@prints("GET grants/{grant}")
def grant_show(
    session: Session,
    grant: Annotated[str, Argument(metavar="[ID]", help="Default: the grant of TRAINYARD_TOKEN.")] = "",
) -> None:
    """Show a grant with its runs in progress, and who changed it.

    Example: trainyard grant show 0123456789ab
    """
    answer = session.api.get("grants", grant) if grant else session.api.get("grant")
    session.print_result(answer, show.grants.one(answer))


@command_of("grant")
@prints("POST grants/{grant}/narrow")
def grant_narrow(
    session: Session,
    grant: Name,
    budget: Budget = None,
    until: Until = "",
    may: May = "",
    routes: Routes = "",
    trainers: Trainers = "",
    clusters: Clusters = "",
    models: Models = "",
    shares: Shares = "",
    runs: RunsInAll = None,
    at_once: AtOnce = None,
    then: Then = "",
) -> None:
    """Reduce what a grant allows, from now on. A list replaces the whole list; `none` is the empty list.

    Example: trainyard grant narrow 0123456789ab --budget 5 --at-once 1
    """
    given = {"budget": budget, "until": until, "may": may, "routes": routes, "trainers": trainers, "clusters": clusters}
    given |= {"models": models, "shares": shares, "runs": runs, "at_once": at_once, "then": then}
    _change(session, grant, "narrow", given)


@command_of("grant")
@prints("POST grants/{grant}/extend")
def grant_extend(
    session: Session,
    grant: Name,
    budget: Budget = None,
    until: Until = "",
    may: May = "",
    routes: Routes = "",
    trainers: Trainers = "",
    clusters: Clusters = "",
    models: Models = "",
    shares: Shares = "",
    runs: RunsInAll = None,
    at_once: AtOnce = None,
    then: Then = "",
) -> None:
    """Increase what a grant allows. A list replaces the whole list. You can't allow what you may not do yourself.

    Example: trainyard grant extend 0123456789ab --budget 40 --until 22:00
    """
    given = {"budget": budget, "until": until, "may": may, "routes": routes, "trainers": trainers, "clusters": clusters}
    given |= {"models": models, "shares": shares, "runs": runs, "at_once": at_once, "then": then}
    _change(session, grant, "extend", given)


@command_of("grant")
@prints("DELETE grants/{grant}")
def grant_revoke(session: Session, grant: Name, then: Then = "") -> None:
    """End a grant now. Its token becomes invalid at once; its record stays.

    Example: trainyard grant revoke 0123456789ab --then cancel
    """
    answer = session.api.delete("grants", grant, then=then or None)
    session.print_result(answer, f"{grant} is revoked.")


def _change(session: Session, grant: str, how: str, given: dict[str, Any]) -> None:
    if not (changes := _changes(given)):
        raise typer.BadParameter("Say what changes, such as --budget 5.")
    answer = session.api.post("grants", grant, how, body=changes)
    session.print_result(answer, show.grants.one(answer))


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """Return the given options in the API's form, without the others."""
    changes = {name: value for name, value in given.items() if value not in (None, "")}
    for name in LISTS:
        if name in changes:
            names = [each.strip() for each in changes[name].split(",") if each.strip()]
            changes[name] = [] if names == ["none"] else names
    if "until" in changes:
        changes["until"] = values.until(changes["until"])
    return changes
