"""Clusters: the sweep that brings idle ones to zero."""

import os
from functools import partial

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system
from shared.kernel.index_settings import sweep_schedule

with on_demand():
    from shared.clusters import auto_idle, sweep
    from shared.kernel import attempts
    from shared.money import charge_costs

blueprint = func.Blueprint()


@blueprint.timer_trigger("timer", sweep_schedule(os.environ))
@attributed
def sweep_timer(timer: func.TimerRequest) -> None:
    """One decision for every cluster, then the books of what they have cost."""
    try:
        with telemetry.span("sweep"):
            steps = attempts.Attempts("sweep")
            steps.do("idle times", partial(auto_idle.set_idle_times, the_system()))
            steps.do("clusters", partial(sweep.sweep, the_system()))
            steps.end()
    finally:  # a cluster that refuses keeps no budget from being held
        with telemetry.span("keep books"):
            charge_costs.keep_books(the_system())
        telemetry.measure_clusters(the_system())
