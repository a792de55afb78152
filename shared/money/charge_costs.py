"""Keep the books: charge what the nodes cost, tell each run what it has cost, and hold the projects to their budgets.

Whatever is done here can be done again: it is made from node counts, and only what differs is written.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from shared.kernel.errors import Changed, TrainyardError
from shared.money import decide
from shared.money.daily_charges import KEPT, Charged, charged, close_days, of_runs
from shared.money.daily_charges import Ports as DailyChargesPorts
from shared.money.decide import WARNED, Consequence, Spent
from shared.money.facts import BudgetReached, BudgetWarned
from shared.money.model import Account, Row, month_of
from shared.money.policy import Budget
from shared.money.ports import HasRetail
from shared.money.prices import RETAIL
from shared.runs.decide import is_over
from shared.runs.model import Cost, Run
from shared.runs.progress.cancel import Ports as CancelPorts
from shared.runs.progress.cancel import cancel_run

log = logging.getLogger(__name__)

REFRESHED_EVERY = timedelta(days=1)
WRITE_ATTEMPTS = 20
MOST_RUNS = 200  # told what they cost in one look; the others in the next one
LEAST_CHANGE = 0.01  # of what a run has cost; less is not worth a write


class Ports(DailyChargesPorts, CancelPorts, HasRetail, Protocol):
    """What is needed here from outside."""


def keep_books(ports: Ports) -> None:
    """Do everything that follows from the nodes' cost by now. One part that fails stops no other.

    Raises the first error at the end, so that the timer's failure is seen.
    """
    errors: list[TrainyardError] = []
    for part in (_refresh_prices, _charge):
        try:
            part(ports)
        except TrainyardError as exc:
            log.warning("books: %s", exc)
            errors.append(exc)
    if errors:
        raise errors[0]


def _refresh_prices(ports: Ports) -> None:
    """Ask Azure for the prices of the clusters' sizes, once a day each."""
    if ports.retail is None:
        return
    stored_prices = {(p.vm_size.lower(), p.region): p for p in ports.books.prices()}
    for cluster in ports.clusters.list():
        before = stored_prices.get((cluster.vm_size.lower(), ports.money.region))
        asked_at = before.asked_at if before else None
        if cluster.vm_size and (asked_at is None or ports.clock() - asked_at >= REFRESHED_EVERY):
            new_prices = ports.retail.of(cluster.vm_size, ports.money.region)
            ports.books.keep_prices([replace(price, asked_at=ports.clock()) for price in new_prices])
            log.info("prices: %d of %s from %s", len(new_prices), cluster.vm_size, RETAIL)


def _charge(ports: Ports) -> None:
    now = ports.clock()
    if not ports.samples.clusters():
        return
    close_days(ports)
    books = charged(ports, now - KEPT, now)
    costs = of_runs(books.days)
    _tell_runs(ports, books.runs, costs)
    for project, budget in sorted(ports.money.budgets.items()):
        _hold_to(ports, project, budget, _spent(project, books, costs, now))


def _tell_runs(ports: Ports, runs: dict[str, Run], costs: dict[str, dict[str, Row]]) -> None:
    """Write on each run what it has cost by now; those first whose cost changed most."""
    now = ports.clock()
    changed = []
    for name in runs.keys() & costs.keys():
        cost = _cost(costs[name], now)
        before = runs[name].money.cost
        difference = abs(cost.dollars - (before.dollars if before else 0.0))
        if before is None or difference > LEAST_CHANGE * before.dollars:
            changed.append((difference, name, cost))
    for _, name, cost in sorted(changed, reverse=True, key=lambda change: change[:2])[:MOST_RUNS]:
        try:
            ports.runs.update(ports.runs.get(name), cost=cost)
        except TrainyardError as exc:  # it changed just now, or can't be read: the next look tells it
            log.info("books: run %s: %s", name, exc)


def _cost(rows: dict[str, Row], now: datetime) -> Cost:
    dollars = {kind: row.dollars for kind, row in rows.items()}
    dollars_by_kind = {kind: dollars.get(kind, 0.0) or 0.0 for kind in ("training", "allocation", "idle")}
    unknown = any(value is None for value in dollars.values())
    return Cost(
        **dollars_by_kind, node_seconds=sum(row.node_seconds for row in rows.values()), at=now, unpriced=unknown
    )


def _spent(project: str, books: Charged, costs: dict[str, dict[str, Row]], now: datetime) -> Spent:
    month = month_of(now)
    rows = [row for day in books.days if day.day.startswith(month) for row in day.rows if row.project == project]
    # A run whose nodes have cost nothing yet is in no row, but its record says whose it is.
    own = {row.who for row in rows} | {run.name for run in books.runs.values() if run.money.project == project}
    runs = {name: run for name, run in books.runs.items() if name in own}
    return Spent(
        month=sum(row.dollars or 0.0 for row in rows),
        runs={name: sum(row.dollars or 0.0 for row in costs.get(name, {}).values()) for name in runs},
        ended={
            name: run.progress.history[-1].at for name, run in runs.items() if is_over(run) and run.progress.history
        },
        live=frozenset(name for name, run in runs.items() if not is_over(run)),
    )


def _hold_to(ports: Ports, project: str, budget: Budget, spent: Spent) -> None:
    """Update the account to what was spent, and act on it."""
    for _ in range(WRITE_ATTEMPTS):
        now, stored = ports.clock(), ports.books.account(project)
        before = stored.value if stored else Account(project, month_of(now))
        after, consequences = decide.consequences(budget, decide.settle(before, spent, now), now)
        # Before the write: who dies in between tells it again under the same id.
        _tell_events(ports, project, consequences)
        try:
            if stored is None:
                ports.books.open_account(after)
            elif after != before:
                ports.books.write_account(stored, after)
        except Changed:
            continue
        _cancel(ports, spent, consequences)
        return
    raise Changed(f"The account of project {project} changed {WRITE_ATTEMPTS} times while it was brought up to date.")


def _tell_events(ports: Ports, project: str, consequences: list[Consequence]) -> None:
    for consequence in consequences:
        if consequence.event:
            fact = BudgetWarned if consequence.event == WARNED else BudgetReached
            ports.happened(fact(project, consequence.subject, consequence.why))
            log.warning("project %s: %s", project, consequence.why)


def _cancel(ports: Ports, spent: Spent, consequences: list[Consequence]) -> None:
    for consequence in consequences:
        for run in consequence.cancel:
            if run in spent.live:
                log.warning("run %s is canceled: %s", run, consequence.why)
                cancel_run(ports, run, consequence.why)
