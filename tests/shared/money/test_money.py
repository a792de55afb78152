"""Money in the whole system on fakes: what runs cost, and what is refused, reserved, announced and canceled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.clusters.auto_idle import set_idle_times
from shared.clusters.model import Cluster
from shared.drops.retrain import train_again
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible, NoAnswer
from shared.money.api import CostsQuery, get_costs
from shared.money.budgets import AccountBudgets
from shared.money.charge_costs import keep_books
from shared.money.policy import Budget
from shared.money.prices import RETAIL, Price, Prices
from shared.runs.intake import create
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.retry_and_continue import retry_run
from shared.runs.model import Moment, Run, RunState
from shared.runs.progress.cancel import cancel_run
from tests.fakes.world import ROUTE, World
from tests.shared.money.spending import (
    DOLLARS,
    SIZE,
    START,
    goes,
    nodes,
    now,
    paying_world,
    policy,
    request,
    started,
    wait,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return paying_world(tmp_path)


def test_a_run_says_what_it_may_cost_before_it_starts(world: World) -> None:
    """A dry run and the run itself show the worst cost; the estimate comes from similar completed runs."""
    told = dry_run(world.system, request())["cost"]
    assert told["greatest"] == pytest.approx(2 * (3600 + 1800) * 0.001)
    assert (told["estimated"], told["project"], told["price"], told["price_from"]) == (None, "vision", DOLLARS, "test")
    run = started(world)
    assert now(world, run).money.greatest == told["greatest"]
    wait(world, 10, 2)
    goes(world, run, "Completed")
    wait(world, 2)
    assert dry_run(world.system, request())["cost"]["estimated"] == pytest.approx(2 * 600 * 0.001)


def test_a_run_shows_what_it_has_cost_split(world: World) -> None:
    """The books split each run's cost into training, allocation and idle tail, from node counts."""
    run = started(world)
    wait(world, 10, 2)
    keep_books(world.system)
    cost = now(world, run).money.cost
    assert cost is not None
    assert (cost.training, cost.allocation, cost.idle) == pytest.approx((1.2, 0.6, 0))
    goes(world, run, "Completed")
    wait(world, 5, 2)
    nodes(world, 0)
    keep_books(world.system)
    cost = now(world, run).money.cost
    assert cost is not None
    assert (cost.training, cost.allocation, cost.idle) == pytest.approx((1.2, 0.6, 0.6))
    assert cost.dollars == pytest.approx(cost.node_seconds * 0.001)


def test_a_run_pays_for_nodes_that_came_before_the_first_look(world: World) -> None:
    """In a new cluster the first sweep comes after the run started: its start and its training are charged."""
    run = create.create_run(world.system, request())
    world.run_until_idle()
    wait(world, 0.1)
    goes(world, run, "Running")
    wait(world, 0.1)
    nodes(world, 2)
    keep_books(world.system)
    cost = now(world, run).money.cost
    assert cost is not None
    assert (cost.training, cost.allocation) == pytest.approx((2 * 6 * 0.001, 2 * 6 * 0.001))


def test_the_price_is_that_of_the_submission(world: World) -> None:
    """A run keeps its price when prices change; unexplained nodes have the new price."""
    run = started(world)
    dear = Prices([Price(SIZE, "low_priority", "eastus", 10 * DOLLARS, "test")])
    world.system = replace(world.system, money=replace(world.system.money, prices=dear))
    wait(world, 10, 3)
    keep_books(world.system)
    cost = now(world, run).money.cost
    assert cost is not None
    assert cost.training == pytest.approx(1.2)
    found = get_costs(world.system, CostsQuery(by="run"))
    lines = {line["key"]: line for line in found["lines"]}
    assert lines[""]["unexplained"] == pytest.approx(300 * 0.01)  # the third node, since the second count


def test_a_run_over_the_budget_is_refused(world: World) -> None:
    """A request whose worst cost exceeds the remaining budget raises with the reason, a dry run gives the reason,
    and no run is created."""
    world.system = replace(world.system, money=policy(vision=Budget(month=20)))
    words = r"may cost \$21.60. Project vision has \$20.00 left for 2026-01"
    with pytest.raises(Conflict, match=words):
        create.create_run(world.system, request(nodes=4))
    assert world.runs.newest() == []
    assert [reason["code"] for reason in dry_run(world.system, request(nodes=4))["reasons"]] == ["over_budget"]


def test_two_submissions_at_once_can_not_both_take_the_rest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two submissions that fit separately but not together, the second to write the account is refused."""
    world.system = replace(world.system, money=policy(vision=Budget(month=15)))
    write, other = world.books.open_account, dry_run(world.system, request())["cost"]["greatest"]

    def second_comes_first(account: Any) -> None:
        monkeypatch.setattr(world.books, "open_account", write)
        create.create_run(world.system, request(), "second")
        write(account)

    monkeypatch.setattr(world.books, "open_account", second_comes_first)
    with pytest.raises(Conflict, match="may cost"):
        create.create_run(world.system, request(), "first")
    assert len(world.runs.newest()) == 1
    stored = world.books.account("vision")
    assert stored is not None
    assert stored.value.committed == other


def test_a_drop_over_the_budget_fails_with_the_reason(world: World) -> None:
    """A drop's run that the budget does not allow ends before its job is sent, with the reason."""
    world.system = replace(world.system, money=policy(vision=Budget(month=1)))
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS")
    world.deliver_all()
    world.clock.advance(60)
    world.run_until_idle()
    run = world.only_run()
    assert (run.progress.state, run.money.project) == (RunState.FAILED, "vision")
    assert "Project vision has $1.00 left for 2026-01 ($1.00 budget" in run.progress.reason
    assert world.jobs.jobs == {}


def test_a_tag_names_a_project_that_has_a_budget(world: World) -> None:
    """A submission's tag overrides its route's project, and a project without a budget is refused with the choices."""
    money = policy(vision=Budget(month=100), audio=Budget(month=100))
    world.system = replace(world.system, money=money)
    assert create.create_run(world.system, request(tags={"project": "audio"})).money.project == "audio"
    with pytest.raises(Impossible, match=r"no project 'mine'.*audio"):
        create.create_run(world.system, request(tags={"project": "mine"}))


def test_a_cluster_s_project_pays_where_nobody_else_does(world: World) -> None:
    """A run without a project, and unexplained nodes, are charged to their cluster's project."""
    world.system = replace(world.system, routes={"mnist": ROUTE}, money=policy(infra=Budget(month=1000)))
    cluster = world.clusters.clusters["cpu-cluster"]
    world.clusters.clusters["cpu-cluster"] = replace(cluster, project="infra")
    run = create.create_run(world.system, request())
    assert run.money.project == "infra"
    nodes(world, 2)
    wait(world, 60, 2)
    keep_books(world.system)
    stored = world.books.account("infra")
    assert stored is not None
    assert stored.value.spent == pytest.approx(7.2)


def test_it_warns_then_refuses_and_ends_what_runs(world: World) -> None:
    """There is one event at half the budget and another at all of it; then no run starts, and after the grace live
    runs are canceled."""
    run = started(world, timeout_seconds=3600)
    tight = policy(vision=Budget(month=4, warn=50, grace_seconds=600))
    world.system = replace(world.system, money=tight)  # an administrator lowers the budget
    wait(world, 15, 2)
    keep_books(world.system)
    keep_books(world.system)
    wait(world, 15, 2)
    keep_books(world.system)
    world.run_until_idle()
    told = [(event.kind, event.subject) for event in world.events.distinct() if event.kind.startswith("Budget")]
    assert told == [("BudgetWarned", "vision/2026-01"), ("BudgetReached", "vision/2026-01")]
    assert now(world, run).cancel.asked_at is None
    assert "spent $4.20, all of its $4.00" in str(AccountBudgets(world.books, tight, world.clock).exhausted("vision"))
    with pytest.raises(Conflict, match="no run starts"):
        create.create_run(world.system, request())
    wait(world, 10, 2)
    keep_books(world.system)
    world.run_until_idle()
    goes(world, run, "Canceled")
    ended = now(world, run)
    assert (ended.progress.state, ended.cancel.asked_at is not None) == (RunState.CANCELED, True)
    assert "Project vision has spent $5.40, all of its $4.00." in ended.progress.reason


def test_what_a_run_kept_back_is_free_when_it_is_over(world: World) -> None:
    """A run that ends early releases its unused reservation, after the time in which its nodes may idle."""
    run = started(world)
    cancel_run(world.system, run.name)
    world.run_until_idle()
    goes(world, run, "Canceled")
    nodes(world, 0)
    wait(world, 31, 0)
    keep_books(world.system)
    stored = world.books.account("vision")
    assert stored is not None
    assert stored.value.reserved == {}
    assert stored.value.committed == stored.value.spent == pytest.approx(0.6)


class Retail:
    """A price list that counts its requests, and may not answer."""

    def __init__(self) -> None:
        self.asked, self.answers = 0, True

    def of(self, vm_size: str, region: str) -> list[Price]:
        self.asked += 1
        if not self.answers:
            raise NoAnswer("The retail prices API does not answer.")
        return [Price(vm_size, "low_priority", region, 7.2, RETAIL, START)]


def test_prices_are_refreshed_once_a_day(world: World) -> None:
    """Each VM size of the clusters is requested once a day; an API that does not answer stops no other part."""
    retail = Retail()
    money = replace(world.system.money, prices=Prices())
    world.system = replace(world.system, money=money, retail=retail)
    retail.answers = False
    nodes(world, 2)
    wait(world, 5, 2)
    with pytest.raises(NoAnswer):
        keep_books(world.system)
    assert world.books.account("vision") is not None
    retail.answers = True
    for _ in range(3):
        keep_books(world.system)
        wait(world, 60, 2)
    assert retail.asked == 2
    assert dry_run(world.system, request())["cost"]["price"] == 7.2
    wait(world, 25 * 60, 2)
    keep_books(world.system)
    assert retail.asked == 3


def test_an_auto_cluster_gets_the_idle_time_of_its_gaps(world: World) -> None:
    """A cluster with `auto` waits for the time that was cheapest in its gaps; before it has gaps, for a drawn time."""
    auto = Cluster("auto", 0, 4, 120, idle_auto=True)
    world.clusters.clusters = {"auto": auto, "other": replace(auto, name="other", idle_auto=False)}
    drawn = set_idle_times(world.system)
    assert drawn == set_idle_times(world.system)
    assert 0 < drawn["auto"] <= 300
    at = START
    for number in range(32):
        moments = [(RunState.RECEIVED, 0), (RunState.SUBMITTED, 0), (RunState.RUNNING, 200), (RunState.COMPLETED, 500)]
        history = tuple(Moment(state, at + timedelta(seconds=seconds)) for state, seconds in moments)
        run = Run.of(
            name=f"run-{number:02}",
            drop="",
            route="",
            fingerprint="",
            experiment="e",
            cluster="auto",
            nodes=1,
            created_at=at,
            state=RunState.COMPLETED,
            history=history,
        )
        world.runs.insert(run)
        at += timedelta(seconds=500 + 40)
    world.clock.now = at
    assert set_idle_times(world.system) == {"auto": 40}
    assert {c.name: c.idle_seconds for c in world.clusters.list()} == {"auto": 40, "other": 120}
    world.clusters.refuses["auto"] = "AuthorizationFailed"
    world.clusters.clusters["auto"] = auto
    assert set_idle_times(world.system) == {"auto": 40}


def test_a_reservation_that_was_made_twice_is_one(world: World) -> None:
    """A submission that is repeated by its client or its message reserves once."""
    for _ in range(3):
        create.create_run(world.system, request(), "key")
    world.run_until_idle()
    stored = world.books.account("vision")
    assert stored is not None
    assert list(stored.value.reserved) == [world.only_run().name]
    assert stored.value.committed == pytest.approx(10.8)


def test_every_way_to_a_run_has_a_project(world: World) -> None:
    """A drop's run trained again, and a retry, reserve and are charged like the first run."""
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS")
    world.deliver_all()
    world.clock.advance(60)
    world.run_until_idle()
    first = world.only_run()
    goes(world, first, "Completed")
    world.clock.advance(60)
    again = train_again(world.system, DropKey("mnist", "a"))
    retried = retry_run(world.system, first.name)
    stored = world.books.account("vision")
    assert stored is not None
    assert {first.name, again.name, retried.name} <= set(stored.value.reserved)
    assert {now(world, run).money.project for run in (first, again, retried)} == {"vision"}
