"""Retention: what each route lets go of, told a week before and carried out by a timer."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from shared.drops.model import Drop, DropKey
from shared.kernel.errors import Conflict, NotFound
from shared.kernel.person import Person
from shared.removals.chain import later
from shared.removals.decide import Going, is_due, is_soon, of_drop, of_run
from shared.removals.model import What
from shared.removals.ports import Removals
from shared.removals.remove import Asked, clear, remove_drop
from shared.runs.model import Run
from shared.system import System

log = logging.getLogger(__name__)

PAGE = 1000


def plan(system: System) -> list[Going]:
    """What will go within a week, the next first."""
    now = system.clock()
    return sorted((going for going in _all(system) if is_soon(going, now)), key=lambda going: going.at)


def enforce(system: System, removals: Removals) -> list[Going]:
    """Ask for what is due to go, and give it. One that can't go now is left to the next time."""
    now, done = system.clock(), []
    for going in _all(system):
        if not is_due(going, now):
            continue
        asked = Asked(Person("retention"), going.why)
        try:
            if going.what is What.DROP:
                remove_drop(system, removals, DropKey.of(going.name), asked)
            else:
                clear(system, removals, going.what, going.name, asked)
        except (Conflict, NotFound) as exc:
            log.info("retention: %s %s stays. %s", going.what, going.name, exc)
            continue
        log.info("retention: %s %s goes. %s", going.what, going.name, going.why)
        done.append(going)
    return done


def _all(system: System) -> Iterator[Going]:
    rules = {route.name: route.retention for route in system.routes.values()}
    if not any(each.checkpoints or each.copies or each.drops for each in rules.values()):
        return
    by_drop: dict[str, list[Run]] = {}
    for run in _runs(system):
        by_drop.setdefault(run.drop, []).append(run)
        if run.route in rules:
            yield from of_run(run, rules[run.route], later(system, run) if run.archived_at else [])
    for route, each in sorted(rules.items()):
        if each.drops:
            for drop in _drops(system, route):
                if going := of_drop(drop, each, by_drop.get(str(drop.key), ())):
                    yield going


def _runs(system: System) -> Iterator[Run]:
    before: Run | None = None
    while page := system.runs.newest(PAGE, before):
        yield from page
        before = page[-1]


def _drops(system: System, route: str) -> Iterator[Drop]:
    after: DropKey | None = None
    while page := system.drops.listed(route, after, PAGE):
        yield from page
        after = page[-1].key
