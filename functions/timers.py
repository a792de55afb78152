"""The timers: one asks after what events did not tell, one scales idle clusters to zero, one lets go what is kept no
longer. Each imports what it calls when it runs, so that no other cold start does."""

from __future__ import annotations

import os
from functools import partial

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from shared import bootstrap
from shared.kernel.index_settings import reconcile_schedule, retention_schedule, sweep_schedule

blueprint = func.Blueprint()


@blueprint.timer_trigger("timer", reconcile_schedule(os.environ))
@attributed
def reconcile_timer(timer: func.TimerRequest) -> None:
    """Make true what events did not tell."""
    from shared import reconcile

    try:
        with telemetry.span("reconcile"):
            reconcile.reconcile(bootstrap.system(), bootstrap.schedules())
    finally:
        telemetry.measure_queues(bootstrap.system())


@blueprint.timer_trigger("timer", sweep_schedule(os.environ))
@attributed
def sweep_timer(timer: func.TimerRequest) -> None:
    """One decision for every cluster, then the books of what they have cost."""
    from shared.clusters import auto_idle, sweep
    from shared.kernel.attempts import Attempts
    from shared.money import charge_costs

    system = bootstrap.system()
    try:
        with telemetry.span("sweep"):
            steps = Attempts("sweep")
            steps.do("idle times", partial(auto_idle.set_idle_times, system))
            steps.do("clusters", partial(sweep.sweep, system))
            steps.end()
    finally:  # a cluster that refuses keeps no budget from being held
        with telemetry.span("keep books"):
            charge_costs.keep_books(system)
        telemetry.measure_clusters(system)


@blueprint.timer_trigger("timer", retention_schedule(os.environ))
@attributed
def retention_timer(timer: func.TimerRequest) -> None:
    """Let go what the routes keep no longer."""
    from shared import daily

    daily.look_after(bootstrap.system(), bootstrap.removals(), bootstrap.post())
