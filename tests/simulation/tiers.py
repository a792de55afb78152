"""What runs with dates choose from: low-priority clusters, and a dedicated one of the same machines."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from shared.clusters.model import Cluster
from shared.money.policy import Policy
from shared.money.prices import Price, Prices
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from tests.fakes.world import World

SIZE, DEDICATED, PRICES = "Standard_NC6s_v3", "sure", {"low_priority": 1.0, "dedicated": 3.0}

DATA = "azureml://datastores/workspaceblobstore/paths/p"  # which is always there


def ask(simulation: Any) -> None:
    """Somebody asks for a run with a date, perhaps once more."""
    key, template = simulation.random.choice("mno"), simulation.random.choice(("mnist", "elastic"))
    within = simulation.random.choice((920, 1000))
    request = RunRequest(template=template, data=DATA, within_seconds=within, takes_seconds=300)
    simulation.host.call("create_run", partial(create.create_run, simulation.system, request, key))


def in_tiers(world: World, clusters: list[Cluster]) -> list[Cluster]:
    """These as low-priority ones, and the dedicated one; every route may use it and `spot`, and there are prices."""
    routes = {
        name: replace(route, clusters=frozenset({"spot", DEDICATED})) for name, route in world.system.routes.items()
    }
    prices = Prices([Price(SIZE, tier, "eastus", at, "test") for tier, at in PRICES.items()])
    world.system = replace(world.system, routes=routes, money=Policy("eastus", {}, prices))
    low = [replace(each, tier="low_priority", vm_size=SIZE) for each in clusters]
    return [*low, Cluster(DEDICATED, 0, 4, 120, tier="dedicated", vm_size=SIZE)]
