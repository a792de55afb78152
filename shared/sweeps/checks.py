"""Checks for rejecting a sweep before the sweep is recorded."""

from __future__ import annotations

from dataclasses import replace

from shared.kernel.errors import Impossible
from shared.runs.model import Run
from shared.runs.ports import RunPorts


def check_budget_has_prices(ports: RunPorts, run: Run) -> None:
    """Raise Impossible for a sweep with a budget whose trials have no price: its spending would be unknown."""
    request = run.asked.request
    if request.sweep is None or not request.sweep.budget:
        return
    trial = replace(run, asked=replace(run.asked, kind="", cluster=request.cluster, nodes=request.node_count))
    if not (priced := ports.admission.priced(trial)).money.price:
        raise Impossible(f"sweep.budget can't be kept: {priced.money.price_from}", "no_price")
