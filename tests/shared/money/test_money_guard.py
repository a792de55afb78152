"""The money guard as users see it: idle GPUs and a budget, from the warning to the refund."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.api import queries
from shared.api.requests import RunListQuery
from shared.clusters import scaling
from shared.kernel.errors import Conflict
from shared.kernel.settings import Rules
from shared.money.charge_costs import keep_books
from shared.money.policy import Budget, Policy
from shared.money.prices import Price, Prices
from shared.runs.codes import CancelCode
from shared.runs.model import Run, RunState
from shared.usage.model import NodeUsage
from tests.fakes.world import World
from tests.shared.money.spending import goes, nodes, now, paying_world, started, wait
from tests.shared.usage.test_idle import gpu
from tests.shared.usage.test_reading import azure_monitor

GPU_SIZE = "Standard_NC4as_T4_v3"
HOUR = 3.6  # dollars of a node: 0.001 a second


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A workspace with a GPU cluster, and a project that may spend $15 a month."""
    made = paying_world(tmp_path)
    made.jobs.vm_sizes["cpu-cluster"] = GPU_SIZE
    cluster = made.clusters.clusters["cpu-cluster"]
    made.clusters.clusters["cpu-cluster"] = replace(cluster, vm_size=GPU_SIZE)
    prices = Prices([Price(GPU_SIZE, "low_priority", "eastus", HOUR, "test")])
    made.system = replace(made.system, money=Policy("eastus", {"vision": Budget(month=15)}, prices))
    return made


def watched(world: World, run: Run, busy: float, **rules: Any) -> list[str]:
    """Return the findings about the clusters after 20 minutes in which the run's GPUs were `busy` percent in use."""
    wait(world, 20, 2)
    azure_monitor(world).used[run.name] = NodeUsage((gpu(*[busy] * 20, until=world.clock()),))
    decisions = scaling.scale_clusters(replace(world.system, rules=Rules(**rules)))
    world.run_until_idle()
    return [words for decision in decisions for words in decision.findings]


def shown(world: World, run: Run) -> dict[str, Any]:
    """Return what `show` and the run's page get."""
    answer: dict[str, Any] = queries.run(world.system, run.name)
    return answer


def test_idle_gpus_are_told_of_and_the_run_goes_on_where_nobody_chose_otherwise(world: World) -> None:
    """Without TRAINYARD_CANCEL_IDLE_GPUS, the warning names the run, and says how idle its GPUs were and how long."""
    run = started(world, timeout_seconds=3600)
    (told,) = watched(world, run, busy=2.0)
    assert told == f"Run {run.name}: Its GPUs have been idle for 15 min: at most 2 % of their time in use."
    assert shown(world, run)["state"] == "running"
    assert world.jobs.jobs[run.name].raw == "Running"


def test_the_warning_of_idle_gpus_is_shown_with_the_run_until_they_work_again(world: World) -> None:
    """`show`, lists and the page have the warning; it is written once, and removed when the GPUs are used."""
    run = started(world, timeout_seconds=3600)
    watched(world, run, busy=2.0)
    labels = shown(world, run)["labeled"]
    assert labels["Warning"] == "idle GPUs"
    assert labels["Warned because"] == "Its GPUs have been idle for 15 min: at most 2 % of their time in use."
    (listed,) = queries.runs(world.system, RunListQuery(details=True))["runs"]
    assert listed["listed"]["Warning"] == "idle GPUs"
    etag = world.runs.get(run.name).etag
    scaling.scale_clusters(world.system)
    assert world.runs.get(run.name).etag == etag
    watched(world, run, busy=80.0)
    assert "Warning" not in shown(world, run)["labeled"]


def test_a_run_with_idle_gpus_ends_and_its_project_gets_back_what_was_kept(world: World) -> None:
    """The run ends with the reason and pays for its use; a run that the budget refused starts now."""
    run = started(world, timeout_seconds=3600)
    with pytest.raises(Conflict, match=r"Project vision has \$\d+\.\d\d left"):
        started(world, timeout_seconds=3600)
    watched(world, run, busy=2.0, cancel_idle_gpus=True)
    assert now(world, run).cancel.code is CancelCode.IDLE_GPUS
    goes(world, run, "Canceled")
    nodes(world, 0)
    wait(world, 31, 0)
    keep_books(world.system)
    answer = shown(world, run)
    assert (answer["state"], answer["reason"]) == (
        "canceled",
        "Its GPUs have been idle for 15 min: at most 2 % of their time in use.",
    )
    cost = answer["cost"]
    spent = cost["training"] + cost["allocation"] + cost["idle"]
    assert 0 < spent <= answer["greatest_cost"]
    assert spent == pytest.approx(cost["node_seconds"] * HOUR / 3600)
    assert started(world, timeout_seconds=3600).progress.state is not RunState.FAILED


def test_busy_gpus_are_paid_for_until_the_budget_ends_the_run(world: World) -> None:
    """The guard ignores a run that uses its GPUs; the budget ends that run, with its own reason."""
    run = started(world, timeout_seconds=3600)
    assert watched(world, run, busy=90.0, cancel_idle_gpus=True) == []
    tight = replace(world.system.money, budgets={"vision": Budget(month=2, grace_seconds=0)})
    world.system = replace(world.system, money=tight)
    wait(world, 10, 2)
    keep_books(world.system)
    world.run_until_idle()
    goes(world, run, "Canceled")
    answer = shown(world, run)
    assert answer["state"] == "canceled"
    assert "all of its $2.00" in answer["reason"]
    assert now(world, run).cancel.code is not CancelCode.IDLE_GPUS
