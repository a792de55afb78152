"""Names in a schedule's request, such as `mnist@latest` or `data@new`, and their meaning at the moment of a firing.

NAME@latest, NAME@best:METRIC   a run, as everywhere; as data, the drop that the run was made from
MODEL@ALIAS, MODEL@NUMBER       as the model to start from: the run of that version
ROUTE@new                       the newest drop that closed since the schedule's last run; if none did, nothing starts
ROUTE@all-new                   all such drops: the data are the route's folder, and the parameter new_drops names them
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from shared.drops.closed import closed_since
from shared.drops.find_name import find
from shared.drops.model import Drop
from shared.drops.ports import DropPorts
from shared.jobs.location import Asset
from shared.jobs.readers.place_text import read_place
from shared.kernel.errors import Impossible, NotFound
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.suggest import did_you_mean, there_are
from shared.runs.intake.request import RunRequest
from shared.schedules.ports import SchedulePorts

NEW, ALL_NEW = "new", "all-new"
PARAMETER = "new_drops"
MOST_DROPS = 100  # per run; the next run receives the rest


@dataclass(frozen=True)
class Meant:
    """The current meaning of the names: changes of the request, and the latest closing of the new drops; or why nothing
    starts.
    """

    changes: dict[str, Any] = field(default_factory=dict)
    drops_until: datetime | None = None
    why_not: str = ""


def meant(ports: SchedulePorts, request: RunRequest, since: datetime | None) -> Meant:
    """Return the current meaning of the request's names. New drops closed after `since`; with None, every drop is new.

    Raises NotFound or Impossible for a name without a meaning.
    """
    changes: dict[str, Any] = {}
    if request.from_run and "@" in request.from_run:
        changes["from_run"] = ports.versions.run_of(request.from_run) or find(ports, request.from_run).run
    data = request.data or ""
    if "@" not in data or "://" in data or isinstance(read_place(data), Asset):
        return Meant(changes)
    route, _, which = data.removeprefix(f"{DROPS_CONTAINER}/").partition("@")
    if which not in (NEW, ALL_NEW):
        return Meant(changes | {"data": f"{DROPS_CONTAINER}/{_drop_of(ports, data)}"})
    if route not in ports.routes:
        near = did_you_mean(route, ports.routes)
        raise NotFound(f"There is no route {route[:80]!r} for {data!r}.{near} Routes: {there_are(ports.routes)}.")
    drops = closed_since(ports.drops, route, since)
    if not drops:
        when = f" since {since:%Y-%m-%d %H:%M} UTC" if since else ""
        return Meant(why_not=f"No drop of route {route} has closed{when}.")
    if which == NEW:
        return Meant(changes | {"data": f"{DROPS_CONTAINER}/{drops[-1].key}"}, drops[-1].sealed_at)
    return Meant(changes | _all(request, route, drops[:MOST_DROPS]), drops[:MOST_DROPS][-1].sealed_at)


def with_meaning(request: RunRequest, changes: dict[str, Any]) -> RunRequest:
    """Return the request with these changes."""
    return msgspec.structs.replace(request, **changes)


def _drop_of(ports: DropPorts, name: str) -> str:
    target = find(ports, name)
    drop = target.drop or ports.runs.get(target.run).value.asked.drop
    if not drop:
        raise Impossible(f"Run {target.run}, which {name!r} means now, was not started by a drop.", "bad_data")
    return drop


def _all(request: RunRequest, route: str, drops: list[Drop]) -> dict[str, Any]:
    names = ",".join(drop.key.name for drop in drops)
    return {"data": f"{DROPS_CONTAINER}/{route}", "parameters": {**request.parameters, PARAMETER: names}}
