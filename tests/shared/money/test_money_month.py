"""A simulated month: the books compared with the simulator's own bill, and the budgets with their bound."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from shared.money import daily_charges, decide, ledger, paid
from shared.money.report import BY, report
from tests.fakes.world import trainers_folder
from tests.shared.money.money_month import Month

SEEDS = range(2)  # the gate's; `bench money_month` plays thousands
# Months whose books differed from the bill, or whose budget was exceeded, in earlier versions.
ONCE_WRONG = (12, 16, 90002, 90006)


def happened(month: Month) -> Counter[str]:
    """Count what happened in a month."""
    runs = month.world.runs.newest(1000)
    return Counter(
        {
            "runs": len(runs),
            "refused": month.seen.refused,
            "preempted": sum(run.progress.attempts > 1 for run in runs),
            "ended by a budget": sum("all of its $" in run.progress.reason for run in runs),
            "leases": len(month.world.leases.rows),
            "minutes without the app": month.seen.stopped,
            "dollars": round(sum(pool.bill for pool in month.pools.values())),
        }
    )


def check(month: Month) -> None:
    """Check what must hold at the end of a month. Raise AssertionError that names the seed."""
    days, seed = month.days(), f"seed {month.seed}"
    bill = sum(pool.bill for pool in month.pools.values())
    prices = {name: pool.price for name, pool in month.pools.items()}
    unknown = sum(day.unknown_seconds / 3600 * prices[day.cluster] for day in days)
    totals = {by: sum(line.spent for line in report(days, by, month.now).lines) for by in BY}
    for by, total in totals.items():
        off = month.seen.uncounted + 1e-6
        assert -off - unknown <= total - bill <= off, f"{seed}: {total} by {by}, the bill is {bill}"
    assert not month.watched or month.seen.uncounted == unknown == 0, seed
    for day in days:
        assert len({(row.kind, row.who) for row in day.rows}) == len(day.rows), f"{seed}: {day}"
    for (project, which), spent in month.spent().items():
        if budget := month.budgets.get(project):
            most = month.amounts[project, which] + month.bound(budget.grace_seconds)
            assert spent <= most, f"{seed}: {project} spent {spent:.2f} in {which}, at most {most:.2f} may be"
    for run in month.world.runs.newest(1000):
        rows = [row for day in days for row in day.rows if row.who == run.name]
        told = run.money.cost.dollars if run.money.cost else 0.0
        assert abs(told - sum(row.dollars or 0.0 for row in rows)) <= 0.011 * told, (
            f"{seed}: {run.name} was told {told}"
        )


def test_months_add_up(tmp_path: Path) -> None:
    """Each dollar of node time is in one row, the rows add up to the bill, and no budget is exceeded by more than its
    bound. In a month with a stopped app, the bill lies between the charged and the charged plus the unknown amount.

    Together the months cover everything: spending, and runs that were refused, preempted, and ended by their budget.
    """
    trainers, found = trainers_folder(tmp_path), Counter[str]()
    for seed in SEEDS:
        month = Month(seed, trainers)
        month.play()
        check(month)
        found += happened(month)
    assert all(
        found[what]
        for what in (
            "runs",
            "refused",
            "preempted",
            "ended by a budget",
            "leases",
            "dollars",
            "minutes without the app",
        )
    ), found


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_the_months_that_were_wrong_once_add_up(tmp_path: Path, seed: int) -> None:
    month = Month(seed, trainers_folder(tmp_path))
    month.play()
    check(month)


def test_a_month_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check fails when an exhausted budget has no effect, when idle nodes are not charged, or when a count
    never expires."""
    month = Month(3, trainers_folder(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(decide, "consequences", lambda _budget, account, _now: (account, []))
        month.play()
    with pytest.raises(AssertionError, match="audio spent"):
        check(month)
    month = Month(1, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(paid, "HOLDS", timedelta(days=9))
        month.play()
        with pytest.raises(AssertionError, match="the bill is"):
            check(month)
    month, charge = Month(0, tmp_path), ledger.split
    monkeypatch.setattr(daily_charges, "split", lambda *known: [s for s in charge(*known) if s.kind != "unexplained"])
    month.play()
    with pytest.raises(AssertionError, match="the bill is"):
        check(month)
