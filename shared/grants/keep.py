"""Hold the grants to their budgets: record the costs of their runs, settle ended runs, announce, and cancel.

Each step may be repeated, because costs are computed from the books and from the runs' own records.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from functools import partial

from shared.clusters.ports import Leases
from shared.grants import decide
from shared.grants.decide import RunCost
from shared.grants.facts import GrantUsed
from shared.grants.model import Grant, grant_of
from shared.grants.ports import GRANTS
from shared.kernel.attempts import Attempts
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.versioned import Stored
from shared.money.daily_charges import Charged, charged
from shared.money.ports import MoneyPorts
from shared.runs.codes import CancelCode
from shared.runs.features import part_of
from shared.runs.find_run import find_run
from shared.runs.model import Run
from shared.runs.progress.cancel import cancel_run
from shared.runs.progress.workloads import workload

log = logging.getLogger(__name__)

Costs = dict[str, list[RunCost]]  # by reservation: the run, or the sweep and its trials


def keep_grants(ports: MoneyPorts) -> None:
    """Hold each grant with reservations to its budget. A failure with one grant does not stop the others."""
    grants = [grant for grant in ports.store(GRANTS).all() if grant.reserved]
    if not grants:
        return
    since = min(reservation.at for grant in grants for reservation in grant.reserved.values())
    books, steps = charged(ports, since, ports.clock()), Attempts("grants")
    for grant in grants:
        steps.do(f"grant {grant.id}", partial(_keep, ports, grant, books))
    steps.end()


def _keep(ports: MoneyPorts, grant: Grant, books: Charged) -> None:
    costs = _costs(ports, grant, books, ports.clock())

    def write(stored: Stored[Grant] | None) -> Grant:
        if stored is None:
            return grant
        after = decide.with_costs(stored.value, costs, ports.clock())
        if percent := decide.mark(after):
            after = _announced(ports, after, percent)
        return ports.store(GRANTS).replace(stored, after).value if after != stored.value else after

    after = compare_and_set(ports.clock, f"Grant {grant.id}", lambda: ports.store(GRANTS).get(grant.id), write)
    every_cost = [cost for some in costs.values() for cost in some]
    for run, why in decide.to_cancel(after, every_cost, ports.clock()).items():
        log.warning("run %s is canceled: %s", run, why)
        cancel_run(ports, run, why, code=CancelCode.BUDGET)


def _announced(ports: MoneyPorts, grant: Grant, percent: int) -> Grant:
    """State how much of the budget is spent. After a crash before the write, the fact is stated again."""
    why = (
        f"Grant {grant.id} ({grant.purpose}) has spent ${grant.spent:.2f}, {percent} % of its "
        f"${grant.terms.budget:.2f} or more."
    )
    ports.happened(GrantUsed(grant.id, percent, why))
    return replace(grant, told=percent)


def _costs(ports: MoneyPorts, grant: Grant, books: Charged, now: datetime) -> Costs:
    """Return the runs of each reservation with their costs. Nodes that a lease keeps warm are charged to its run."""
    own = {name for name, run in books.runs.items() if grant_of(run.people.owner_id) == grant.id}
    booked = _booked(ports.leases, ports.clock, books)
    costs: Costs = defaultdict(list)
    for name in sorted(own | grant.reserved.keys()):
        run = find_run(ports.runs, name)
        paid_by = next((each for each in (part_of(run), name) if each in grant.reserved), "") if run else ""
        if run and paid_by:
            costs[paid_by].append(RunCost(run, max(booked.get(name, 0.0), _by_record(run, now))))
    return costs


def _booked(leases: Leases, clock: Clock, books: Charged) -> dict[str, float]:
    """Return the dollars by run in the books, including those of the run's lease."""
    first = min((run.created_at for run in books.runs.values()), default=clock())
    runs = {lease.id: lease.run for lease in leases.made_between(first, clock()) if lease.run}
    dollars: dict[str, float] = defaultdict(float)
    for day in books.days:
        for row in day.rows:
            dollars[runs.get(row.who, row.who)] += row.dollars or 0.0
    return dollars


def _by_record(run: Run, now: datetime) -> float:
    """Return the cost of the run's nodes by the run's own record, which exists before the books and during gaps in the
    books.

    For a run with steps, this is the most that the run can have cost.
    """
    kind = workload(run)
    if not kind.has_own_nodes:
        return 0.0
    if decide.has_steps(run):
        return decide.ceiling(run, now) if run.jobs.job else 0.0
    uses = kind.uses(run, now)
    spells = [spell for use in uses for spell in ((*use.waited, *use.ran) if kind.pays_while_waiting else use.ran)]
    return sum((spell.end - spell.begin).total_seconds() * spell.nodes for spell in spells) * run.money.price / 3600
