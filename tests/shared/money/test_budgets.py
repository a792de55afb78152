"""Budgets as decisions: what is refused, what is reserved, what follows, and when a new month begins."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shared.jobs.readers.azureml import read_job
from shared.jobs.spec import JobSpec
from shared.money.decide import Spent, admit, consequences, quote, update_account
from shared.money.ledger import IDLE_TAIL
from shared.money.model import Account, Quote, Reserved
from shared.money.policy import Budget
from shared.runs.model import Run
from shared.runs.ports import Refusal
from tests.fakes.parts import changed

NOW = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def run(name: str = "a", nodes: int = 2, seconds: int = 3600) -> Run:
    return Run.of(
        name=name,
        drop="",
        route="",
        fingerprint="",
        experiment="e",
        cluster="gpu",
        nodes=nodes,
        created_at=NOW,
        request=JobSpec(timeout_seconds=seconds),
    )


def account(spent: float = 0.0, **reserved: float) -> Account:
    return Account("p", "202601", spent, {name: Reserved(most, NOW) for name, most in reserved.items()})


def refused(found: Account | Refusal) -> str:
    assert isinstance(found, Refusal), found
    return found.why


def spent(month: float, ended: dict[str, datetime] | None = None, **runs: float) -> Spent:
    over = ended or {}
    return Spent(month, runs, over, frozenset(runs) - set(over))


def test_what_a_run_may_cost() -> None:
    """The worst cost is the time limit plus half an hour on all nodes; the estimate is the median of similar runs."""
    found = quote(run(), 3.0, [600, 1200, 6000])
    assert found.greatest == 2 * (3600 + 1800) * 3.0 / 3600
    assert found.estimated == 2 * 1200 * 3.0 / 3600
    assert quote(run(), 3.0, [60_000]).estimated == found.greatest
    assert quote(run(), 3.0, []).estimated is None
    assert "No price is known for the nodes of gpu" in quote(run(), None, []).why


def test_what_a_pipeline_may_cost() -> None:
    """A pipeline's steps may run in parallel, each for its whole time limit; a sweep step counts once per trial."""
    step = {"command": "x", "environment": "azureml:e:1"}
    jobs = {
        "short": {**step, "limits": {"timeout": 600}},
        "wide": {**step, "resources": {"instance_count": 3}},
        "tuned": {"type": "sweep", "trial": step, "limits": {"max_total_trials": 5, "trial_timeout": 60}},
    }
    request = replace(read_job({"type": "pipeline", "jobs": jobs}), timeout_seconds=3600)
    found = quote(changed(run(nodes=3), request=request), 1.0, [])
    assert found.greatest == (600 + 1800 + 3 * (3600 + 1800) + 5 * (60 + 1800)) / 3600


def test_two_runs_that_fit_alone_but_not_together() -> None:
    """Money reserved for one run is not available to another; admitting the same run again changes nothing."""
    budget, cost = Budget(month=10), Quote(1, 6, 3)
    first = admit(budget, account(), run("a"), cost, NOW)
    assert isinstance(first, Account)
    assert first.committed == 6
    assert admit(budget, first, run("a"), cost, NOW) == first
    why = refused(admit(budget, first, run("b"), cost, NOW))
    assert (
        "The run may cost $6.00. Project p has $4.00 left for 2026-01 ($10.00 budget, $0.00 spent, $6.00 reserved"
        in why
    )
    assert isinstance(admit(budget, first, run("b"), replace(cost, greatest=4.0), NOW), Account)


def test_from_refuse_percent_on_no_run_starts() -> None:
    """No run starts once `refuse` percent are spent, however cheap it is."""
    budget = Budget(month=10, refuse=90)
    assert isinstance(admit(budget, account(8.9), run(), Quote(0, 0.1, 1), NOW), Account)
    assert "from 90 % on, no run starts" in refused(admit(budget, account(9), run(), Quote(0, 0.1, 1), NOW))


def test_a_run_s_own_limit_is_what_is_kept_back() -> None:
    """A budget per run reserves no more than its limit, and refuses a run whose estimate is above the limit."""
    budget = Budget(month=10, run=3)
    admitted = admit(budget, account(), run(), Quote(2, 60, 1), NOW)
    assert isinstance(admitted, Account)
    assert admitted.committed == 3
    assert "allows $3.00 a run" in refused(admit(budget, account(), run(), Quote(4, 60, 1), NOW))


def test_without_a_price_a_budget_can_t_be_kept() -> None:
    """A run whose nodes have no known price does not start in a project that has a budget."""
    assert "need a price" in refused(admit(Budget(month=10), account(), run(), Quote(why="No price."), NOW))


def test_a_new_month_begins_with_what_still_runs() -> None:
    """A new month starts with nothing spent and no warnings sent, but keeps the reservations of live runs."""
    old = replace(account(9.5, a=4.0), warned_at=NOW, reached_at=NOW)
    later = NOW + HOUR
    assert "left for 2026-02 ($10.00 budget" in refused(admit(Budget(month=10), old, run("b"), Quote(1, 7, 1), later))
    admitted = admit(Budget(month=10), old, run("b"), Quote(1, 6, 1), later)
    assert isinstance(admitted, Account)
    assert (admitted.month, admitted.spent, admitted.warned_at, admitted.reached_at) == ("202602", 0, None, None)
    assert admitted.committed == 10


def test_what_was_not_used_is_free_again_after_the_idle_tail() -> None:
    """Costs come late: a run that is over keeps its reservation while its nodes may idle, and then releases the
    rest."""
    held = account(0, a=6.0)
    ended = {"a": NOW}
    soon = update_account(held, spent(2, ended, a=2.0), NOW + IDLE_TAIL / 2)
    assert soon.committed == 6
    assert update_account(soon, spent(2.5, ended, a=2.5), NOW + IDLE_TAIL).committed == 2.5
    costly = update_account(held, spent(9, a=9.0), NOW)
    assert costly.committed == 9  # the actual cost exceeds the reservation


def test_a_reservation_without_a_run_is_given_back() -> None:
    """The reservation of a submission that died before it created its run is released after an hour."""
    assert update_account(account(0, a=6.0), spent(0), NOW + HOUR / 2).committed == 6
    assert update_account(account(0, a=6.0), spent(0), NOW + HOUR).committed == 0


def test_it_warns_once_then_tells_and_ends_what_runs_after_the_grace() -> None:
    """There is one event at `warn` percent and another at 100 percent; after the grace the project's runs are
    canceled."""
    budget = Budget(month=10, warn=80, grace_seconds=600)
    held, found = consequences(budget, account(8, a=6.0), NOW)
    assert [(c.event, c.subject) for c in found] == [("BudgetWarned", "p/2026-01")]
    assert consequences(budget, held, NOW)[1] == []
    reached, found = consequences(budget, replace(held, spent=10.0), NOW)
    assert [(c.event, c.cancel) for c in found] == [("BudgetReached", ())]
    assert consequences(budget, reached, NOW + timedelta(seconds=599))[1] == []
    last, found = consequences(budget, reached, NOW + timedelta(seconds=600))
    assert [(c.event, c.cancel) for c in found] == [("", ("a",))]
    assert "has spent $10.00, all of its $10.00" in found[0].why
    assert "no run starts" in refused(admit(budget, last, run("b"), Quote(0, 0, 0), NOW))


def test_a_run_that_reaches_its_own_limit_ends_alone() -> None:
    """The limit per run warns, notifies and ends that run only, and no other run of the project."""
    budget = Budget(run=5, grace_seconds=0)
    held = update_account(account(0, a=5.0, b=5.0), spent(6.0, a=5.5, b=0.5), NOW)
    held, found = consequences(budget, held, NOW)
    assert [(c.event, c.subject, c.cancel) for c in found] == [
        ("BudgetWarned", "a", ()),
        ("BudgetReached", "a", ()),
        ("", "", ("a",)),
    ]
    assert "Run a has cost $5.50, all of its $5.00" in found[2].why
    assert held.reserved["b"].warned_at is None


def test_runs_that_began_before_the_budget_are_ended_too() -> None:
    """A live run without a reservation, because it is older than the budget, is also canceled at 100 percent."""
    held = update_account(account(), spent(11, a=11.0), NOW)
    held, _ = consequences(Budget(month=10, grace_seconds=0), held, NOW)
    assert consequences(Budget(month=10, grace_seconds=0), held, NOW)[1][0].cancel == ("a",)
