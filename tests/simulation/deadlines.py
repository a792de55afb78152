"""People who request runs with dates, the clusters for these runs, and the rules for a date."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from shared.clusters.model import Cluster
from shared.deadlines.model import Date
from shared.deadlines.plan import NodeChoice
from shared.money.policy import Policy
from shared.money.prices import Price, Prices
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from tests.fakes.world import World
from tests.simulation.rules import DATA, Actions, Rules
from tests.simulation.scheduler import check

SIZE, DEDICATED, PRICES = "Standard_NC6s_v3", "sure", {"low_priority": 1.0, "dedicated": 3.0}


def ask(simulation: Any) -> None:
    """Request a run with a date, perhaps once more."""
    key, template = simulation.random.choice("mno"), simulation.random.choice(("mnist", "elastic"))
    within = simulation.random.choice((920, 1000))
    request = RunRequest(template=template, data=DATA, within_seconds=within, takes_seconds=300)
    simulation.host.call("create_run", partial(create.create_run, simulation.system, request, key))


def in_tiers(world: World, clusters: list[Cluster]) -> list[Cluster]:
    """Return these clusters as low-priority ones, and the dedicated one. Every route may use `spot` and the
    dedicated cluster, and there are prices."""
    routes = {
        name: replace(route, clusters=frozenset({"spot", DEDICATED})) for name, route in world.system.routes.items()
    }
    prices = Prices([Price(SIZE, tier, "eastus", at, "test") for tier, at in PRICES.items()])
    world.system = replace(world.system, routes=routes, money=Policy("eastus", {}, prices))
    low = [replace(each, tier="low_priority", vm_size=SIZE) for each in clusters]
    return [*low, Cluster(DEDICATED, 0, 4, 120, tier="dedicated", vm_size=SIZE)]


def _keeps_its_date(simulation: Any, before: Date, date: Date, run: Run) -> None:
    """Check that the run uses dedicated nodes once only these can keep its date."""
    if date.pace.paced_at is None or date.pace.paced_at == before.pace.paced_at:
        return
    simulation.counts["looks at dates"] += 1
    due, pace = date.due, date.pace
    slack = (due.done_by - date.pace.paced_at).total_seconds() - due.takes_seconds * (1 - pace.done_share)
    sure = slack >= 2 * due.change_seconds or pace.holds is NodeChoice.DEDICATED
    check(sure, f"run {run.name} holds {pace.holds}, and has {slack:.0f} s more than it needs")


class DateRules(Rules):
    also = "dates"

    def clusters(self, world: World, clusters: list[Cluster]) -> list[Cluster]:
        return in_tiers(world, clusters)

    def start(self, simulation: Any) -> None:
        """Make the jobs long."""
        simulation.fates, simulation.length = ("Queued",) * 12 + ("Completed",), 600

    def actions(self, simulation: Any) -> Actions:
        return [(partial(ask, simulation), 2.0)]

    def stepped(self, simulation: Any, before: Run, run: Run) -> bool:
        if (date := run.feature(Date)) is None:
            return False
        _keeps_its_date(simulation, before.feature(Date) or date, date, run)
        return True


RULES = DateRules()
