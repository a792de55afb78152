"""What runs with dates choose from: low-priority clusters, and a dedicated one of the same machines."""

from __future__ import annotations

from dataclasses import replace

from shared.clusters.model import Cluster
from shared.money.policy import Policy
from shared.money.prices import Price, Prices
from tests.fakes.world import World

SIZE, DEDICATED, PRICES = "Standard_NC6s_v3", "sure", {"low_priority": 1.0, "dedicated": 3.0}


def in_tiers(world: World, clusters: list[Cluster]) -> list[Cluster]:
    """These as low-priority ones, and the dedicated one; every route may use it and `spot`, and there are prices."""
    routes = {
        name: replace(route, clusters=frozenset({"spot", DEDICATED})) for name, route in world.system.routes.items()
    }
    prices = Prices([Price(SIZE, tier, "eastus", at, "test") for tier, at in PRICES.items()])
    world.system = replace(world.system, routes=routes, money=Policy("eastus", {}, prices))
    low = [replace(each, tier="low_priority", vm_size=SIZE) for each in clusters]
    return [*low, Cluster(DEDICATED, 0, 4, 120, tier="dedicated", vm_size=SIZE)]
