"""A workspace on fakes whose nodes cost money: one cluster, a price, a project with a budget, and a clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from shared.clusters.model import Cluster
from shared.clusters.samples import sample_of
from shared.money.policy import Budget, Policy
from shared.money.prices import Price, Prices
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from tests.fakes.world import ROUTE, World, trainers_folder

SIZE = "Standard_D2s_v5"
DOLLARS = 3.6  # an hour, so 0.001 a second
START = datetime(2026, 1, 10, 8, tzinfo=UTC)


def policy(**budgets: Budget) -> Policy:
    return Policy("eastus", budgets, Prices([Price(SIZE, "low_priority", "eastus", DOLLARS, "test")]))


def paying_world(folder: Path) -> World:
    """Return a workspace with one cluster, and a budget of $100 a month for the project vision."""
    made = World(trainers_folder(folder), [replace(ROUTE, project="vision")])
    made.clock.now = START
    made.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 0, 4, 120, tier="low_priority", vm_size=SIZE)
    made.system = replace(made.system, money=policy(vision=Budget(month=100, warn=50, grace_seconds=600)))
    return made


def request(**more: Any) -> RunRequest:
    return RunRequest(template="mnist", data="azureml://datastores/workspaceblobstore/paths/p", **more)


def nodes(world: World, count: int) -> None:
    """Set the cluster's number of nodes from now on, and count them."""
    cluster = replace(world.clusters.clusters["cpu-cluster"], nodes=count, running_nodes=count)
    world.clusters.clusters["cpu-cluster"] = cluster
    world.samples.record(sample_of(cluster, world.clock()))


def wait(world: World, minutes: float, count: int | None = None) -> None:
    """Let time pass, with a count of the nodes every five minutes."""
    end = world.clock() + timedelta(minutes=minutes)
    while world.clock() < end:
        world.clock.advance(min(300, (end - world.clock()).total_seconds()))
        if count is not None:
            nodes(world, count)


def goes(world: World, run: Run, raw: str) -> None:
    world.job_goes(run.name, raw)
    world.deliver_all()
    world.run_until_idle()


def started(world: World, **more: Any) -> Run:
    """Return a running run that waited five minutes for two nodes."""
    run = create.create_run(world.system, request(**more))
    world.run_until_idle()
    nodes(world, 2)
    wait(world, 5, 2)
    goes(world, run, "Running")
    return run


def now(world: World, run: Run) -> Run:
    return world.runs.get(run.name).value
