"""Retention: what each route deletes, listed a week before and carried out by a timer.

Each pass reads the lists of runs and of the routes' drops, a thousand at a time, and holds in memory only the names of
the drops that runs keep. A single run is read only once something of it is due. Decision 37 (docs/adr) explains why a
pass reads all of them, and how far that scales.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from shared.drops.model import Drop
from shared.drops.ports import Drops
from shared.jobs.route import Retention
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, NotFound
from shared.kernel.person import Person
from shared.removals.chain import later
from shared.removals.decide import TOLD_BEFORE, PlannedRemoval, keeps_data, of_drop, of_run
from shared.removals.model import RemovalKind
from shared.removals.ports import Named, RemovalPorts, Removals
from shared.removals.remove import RemovalRequest, clear, remove_drop
from shared.runs.model import Run
from shared.runs.ports import Runs
from shared.runs.views.run_list import newest_first

log = logging.getLogger(__name__)

PAGE = 1000


def plan(ports: RemovalPorts) -> list[PlannedRemoval]:
    """Return the deletions of the coming week, soonest first."""
    return sorted(_going(ports, ports.clock() + TOLD_BEFORE), key=lambda going: going.at)


def enforce(ports: RemovalPorts, removals: Removals) -> list[PlannedRemoval]:
    """Request the due removals, and return them. The next pass retries a refused removal."""
    done = []
    for going in _going(ports, ports.clock()):
        request = RemovalRequest(Person("retention"), going.why)
        try:
            if going.what is RemovalKind.DROP:
                remove_drop(ports, removals, DropKey.of(going.name), request)
            else:
                clear(ports, removals, going.what, going.name, request)
        except (Conflict, NotFound) as exc:
            log.info("retention: %s %s stays. %s", going.what, going.name, exc)
            continue
        log.info("retention: %s %s goes. %s", going.what, going.name, going.why)
        done.append(going)
    return done


def _going(ports: RemovalPorts, by: datetime) -> Iterator[PlannedRemoval]:
    """Yield the deletions until then: first from each run, then drops without a keeping run."""
    rules = {route.name: route.retention for route in ports.routes.values()}
    if not any(each.checkpoints or each.copies or each.drops for each in rules.values()):
        return
    kept: set[str] = set()
    for run in newest_first(ports.runs):
        if keeps_data(run):
            kept |= {place for place in (run.asked.drop, *run.asked.reads) if _dropped(rules, place)}
        if run.asked.route in rules:
            due = (going for going in of_run(run, rules[run.asked.route]) if going.at <= by)
            yield from (going for going in due if not _is_needed(ports.runs, ports.named, run, going.what))
    for route, rule in sorted(rules.items()):
        for drop in _drops(ports.drops, route) if rule.drops else ():
            if not _is_kept(drop.key, kept) and (going := of_drop(drop, rule)) and going.at <= by:
                yield going


def _dropped(rules: dict[str, Retention], place: str) -> bool:
    """Return whether the route's rules delete drops at this place."""
    rule = rules.get(place.partition("/")[0])
    return rule is not None and rule.drops > 0


def _is_kept(drop: DropKey, kept: set[str]) -> bool:
    """Return whether a kept run reads the drop, its whole route, or something in the drop."""
    key = str(drop)
    return key in kept or drop.route in kept or any(place.startswith(f"{key}/") for place in kept)


def _is_needed(runs: Runs, named: Named, run: Run, what: RemovalKind) -> bool:
    """Return whether a kept run continues from these checkpoints, or a model's version refers to these copies."""
    return _shared(runs, run) if what is RemovalKind.CHECKPOINTS else bool(named.needing_run(run.name))


def _shared(runs: Runs, run: Run) -> bool:
    """Return whether a kept run continues from this run's checkpoints."""
    return any(each.removed.at is None for each in later(runs, run))


def _drops(drops: Drops, route: str) -> Iterator[Drop]:
    after: DropKey | None = None
    while page := drops.listed(route, after, PAGE):
        yield from page
        after = page[-1].key
