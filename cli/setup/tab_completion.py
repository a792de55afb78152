"""Completions for names in commands: the current runs, drops, clusters, trainers and others of this Trainyard.

The shell waits for the answer, so the API gets little time. After any error, nothing is offered and no message is
printed. Shells evaluate the offered text, and anyone may choose a name, so only names without characters that have a
meaning to a shell are offered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import typer

from ..api.client import Api
from .profiles import Profiles, choose, config_folder

PATIENCE_SECONDS = 3.0
NEWEST = 200  # the newest runs, which are searched for the typed beginning
MOST = 50
LONGEST = 60  # characters of a description: a longer one would wrap, and its second line would count as a completion
_NAME = re.compile(r"[A-Za-z0-9@./][A-Za-z0-9@:./_-]*")
_UNPLAIN = re.compile(r"[^A-Za-z0-9 ,./=_-]+")

Offer = tuple[str, str]  # a completion, and its description, which zsh and fish show
Ask = Callable[..., Any]


def _offering(*sources: Callable[[Ask], Iterable[Offer]]) -> Callable[[typer.Context, str], list[Offer]]:
    """Return the function for a command parameter's `autocompletion`."""

    def offers(ctx: typer.Context, incomplete: str) -> list[Offer]:
        offers_by_name = {name: words for source in sources for name, words in _had(source, ctx)}
        begun = [name for name in offers_by_name if name.startswith(incomplete) and _NAME.fullmatch(name)]
        return [(name, " ".join(_UNPLAIN.sub(" ", offers_by_name[name]).split())[:LONGEST]) for name in begun[:MOST]]

    return offers


def _had(source: Callable[[Ask], Iterable[Offer]], ctx: typer.Context) -> list[Offer]:
    try:
        return list(source(_ask(ctx)))
    except Exception:  # noqa: BLE001  # whatever it is, the line that is being typed is no place to say it
        return []


def _ask(ctx: typer.Context) -> Ask:
    profiles = Profiles(config_folder(os.environ))
    options = [str(ctx.params.get(name) or "") for name in ("url", "profile")]
    profile = choose(options[0], options[1], os.environ, profiles)
    api = Api(profile.url, profiles.authenticate(profile))

    def ask(path: str, **query: object) -> Any:
        return api.send("GET", path, query=query, timeout=PATIENCE_SECONDS).json()

    return ask


def _runs(ask: Ask) -> Iterator[Offer]:
    rows = ask("rows", limit=NEWEST)["rows"]
    for row in rows:
        yield row["run"], f"{row['state']} {row['drop'] or row['experiment']}"
    for route in ("", *sorted({row["drop"].partition("/")[0] for row in rows})):
        yield f"{route}@latest", "the newest run"


def _drops(ask: Ask) -> Iterator[Offer]:
    for drop in ask("drops"):
        yield drop["drop"], drop["state"]


def _trainers(ask: Ask) -> Iterator[Offer]:
    for trainer in ask("trainers"):
        yield trainer["trainer"], trainer["description"]


def _routes(ask: Ask) -> Iterator[Offer]:
    for route in ask("routes"):
        yield route["route"], route["description"] or route["trainer"]


def _clusters(ask: Ask) -> Iterator[Offer]:
    for cluster in ask("clusters"):
        yield cluster["name"], cluster["vm_size"]


def _leases(ask: Ask) -> Iterator[Offer]:
    for lease in ask("leases"):
        yield lease["lease"], lease["cluster"]


def _schedules(ask: Ask) -> Iterator[Offer]:
    for schedule in ask("schedules"):
        yield schedule["id"], schedule["cron"] or f"new files in {schedule['route']}"


def _subscriptions(ask: Ask) -> Iterator[Offer]:
    for subscription in ask("notices"):
        yield subscription["id"], f"{subscription['channel']} {' '.join(subscription['on'])}"


runs, drops = _offering(_runs), _offering(_drops)
runs_or_drops, targets = _offering(_runs, _drops), _offering(_routes, _drops)
trainers, routes, clusters = map(_offering, (_trainers, _routes, _clusters))
leases, schedules, subscriptions = map(_offering, (_leases, _schedules, _subscriptions))
