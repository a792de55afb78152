"""Keep the books: charge what the nodes cost, write each run's cost on the run, and enforce the projects' budgets.

Every step may be repeated: charges are computed from node counts, and only differences are written.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from shared.clusters.samples import HOLDS
from shared.kernel.attempts import Attempts
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import TrainyardError
from shared.kernel.memory import Memory, Topic
from shared.kernel.ports import StoragePorts
from shared.kernel.versioned import Stored
from shared.money import decide
from shared.money.daily_charges import KEPT, Charged, charged, close_days, of_runs
from shared.money.decide import WARNED, Consequence, Spent
from shared.money.facts import BudgetReached, BudgetWarned
from shared.money.model import Account, Row, month_of
from shared.money.policy import Budget
from shared.money.ports import MoneyPorts
from shared.money.prices import RETAIL
from shared.money.sampled import Sampled
from shared.runs import features
from shared.runs.codes import CancelCode
from shared.runs.decide import is_over
from shared.runs.model import Cost, Run
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.cancel import cancel_run

log = logging.getLogger(__name__)

REFRESHED_EVERY = timedelta(days=1)
CHARGED_EVERY = timedelta(hours=1)  # even if no cluster has a node, because days must be closed and months begin
CLOCKS_DIFFER = timedelta(minutes=1)
NEVER = datetime.min.replace(tzinfo=UTC)
MOST_RUNS = 200  # whose cost one pass writes; the next pass writes the others
LEAST_CHANGE = 0.01  # share of a run's cost; a smaller change is not worth a write


@dataclass
class Done:
    """The latest work of this process: the time of reading the prices of each size, and the time of the last
    charges.
    """

    asked_at: dict[str, datetime] = field(default_factory=dict)
    charged_at: datetime = NEVER


DONE = Topic[Done]("books done")


def keep_books(ports: MoneyPorts) -> None:
    """Refresh prices, then charge the nodes' costs up to now. A failure of the first part does not stop the second.

    Raises the first error at the end, so that the timer's execution counts as failed.
    """
    steps = Attempts("books")
    steps.do("prices", partial(_refresh_prices, ports))
    steps.do("charges", partial(_charge, ports))
    steps.do("limits of features", partial(features.keep_books, ports))
    steps.end()


def _refresh_prices(ports: MoneyPorts) -> None:
    """Ask Azure for the prices of the clusters' sizes, once a day per size."""
    if ports.retail is None:
        return
    now, asked_at = ports.clock(), ports.memory.one(DONE, Done).asked_at
    sizes = sorted({cluster.vm_size for cluster in ports.clusters.list() if cluster.vm_size})
    if all(now - asked_at.get(size.lower(), NEVER) < REFRESHED_EVERY for size in sizes):
        return
    stored = (price for price in ports.books.prices() if price.region == ports.money.region and price.asked_at)
    asked_at.update({price.vm_size.lower(): price.asked_at for price in stored if price.asked_at})
    for size in sizes:
        if now - asked_at.get(size.lower(), NEVER) >= REFRESHED_EVERY:
            new_prices = ports.retail.of(size, ports.money.region)
            ports.books.keep_prices([replace(price, asked_at=now) for price in new_prices])
            asked_at[size.lower()] = now
            log.info("prices: %d of %s from %s", len(new_prices), size, RETAIL)


def _charge(ports: MoneyPorts) -> None:
    now = ports.clock()
    samples = Sampled(ports.samples)
    if not samples.clusters or _is_charged(ports.runs, ports.memory, samples, now):
        return
    close_days(ports, samples)
    books = charged(ports, now - KEPT, now, samples)
    costs = of_runs(books.days)
    all_told = _write_run_costs(ports.runs, ports.clock, books.runs, costs)
    for project, budget in sorted(ports.money.budgets.items()):
        _hold_to(ports, project, budget, _spent(project, books, costs, now))
    if all_told and all(map(is_over, books.runs.values())):
        ports.memory.one(DONE, Done).charged_at = now


def _is_charged(runs: Runs, memory: Memory, samples: Sampled, now: datetime) -> bool:
    """Return whether all costs are charged: this process charged recently, no run is newer, and no cluster had a
    node.
    """
    charged_at = memory.one(DONE, Done).charged_at
    if now - charged_at >= CHARGED_EVERY:
        return False
    if any(run.created_at > charged_at - CLOCKS_DIFFER for run in runs.newest(1)):
        return False
    return not any(sample.nodes for name in samples.clusters for sample in samples.between(name, now - HOLDS, now))


def _write_run_costs(runs: Runs, clock: Clock, charged: dict[str, Run], costs: dict[str, dict[str, Row]]) -> bool:
    """Write each run's cost so far on the run, largest changes first. Return False if a run was not written."""
    now = clock()
    changed = []
    for name in charged.keys() & costs.keys():
        cost = _cost(costs[name], now)
        before = charged[name].money.cost
        difference = abs(cost.dollars - (before.dollars if before else 0.0))
        if before is None or difference > LEAST_CHANGE * before.dollars:
            changed.append((difference, name, cost))
    updated = 0
    for _, name, cost in sorted(changed, reverse=True, key=lambda change: change[:2])[:MOST_RUNS]:
        try:
            runs.update(old := runs.get(name), replace(old.value, money=replace(old.value.money, cost=cost)))
            updated += 1
        except TrainyardError as exc:  # the run just changed, or can't be read: the next pass writes it
            log.info("books: run %s: %s", name, exc)
    return updated == len(changed)


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
    # A run without costs so far has no row, but its record names its project.
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


def _hold_to(ports: MoneyPorts, project: str, budget: Budget, spent: Spent) -> None:
    """Set the account to the amount spent, and act on the consequences."""

    def write(stored: Stored[Account] | None) -> list[Consequence]:
        now = ports.clock()
        before = stored.value if stored else Account(project, month_of(now))
        after, consequences = decide.consequences(budget, decide.update_account(before, spent, now), now)
        # State the facts before the write: after a crash in between they are stated again under the same id.
        _announce_consequences(ports, project, consequences)
        if stored is None:
            ports.books.open_account(after)
        elif after != before:
            ports.books.write_account(stored, after)
        return consequences

    what = f"The account of project {project}"
    _cancel(ports, spent, compare_and_set(ports.clock, what, lambda: ports.books.account(project), write))


def _announce_consequences(ports: StoragePorts, project: str, consequences: list[Consequence]) -> None:
    for consequence in consequences:
        if consequence.event:
            fact = BudgetWarned if consequence.event == WARNED else BudgetReached
            ports.happened(fact(project, consequence.subject, consequence.why))
            log.warning("project %s: %s", project, consequence.why)


def _cancel(ports: RunPorts, spent: Spent, consequences: list[Consequence]) -> None:
    for consequence in consequences:
        for run in consequence.cancel:
            if run in spent.live:
                log.warning("run %s is canceled: %s", run, consequence.why)
                cancel_run(ports, run, consequence.why, code=CancelCode.BUDGET)
