"""The timers: reconcile lost events, scale idle clusters to zero, and delete expired data. Each timer imports its
functions at its first run, to keep the imports out of other cold starts.
"""

from __future__ import annotations

import os
from functools import partial

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from shared import bootstrap
from shared.kernel.index_settings import reconcile_schedule, retention_schedule, scaling_schedule

blueprint = func.Blueprint()


@blueprint.timer_trigger("timer", reconcile_schedule(os.environ))
@attributed
def reconcile_timer(timer: func.TimerRequest) -> None:
    """Repair the effects of lost events."""
    from shared import reconcile

    try:
        with telemetry.span("reconcile"):
            reconcile.reconcile(bootstrap.system(), bootstrap.schedules())
    finally:
        telemetry.measure_queues(bootstrap.system())


@blueprint.timer_trigger("timer", scaling_schedule(os.environ))
@attributed
def scaling_timer(timer: func.TimerRequest) -> None:
    """Decide about every cluster, then charge the clusters' costs."""
    from shared.clusters import auto_idle, scaling
    from shared.kernel.attempts import Attempts
    from shared.money import charge_costs

    system = bootstrap.system()
    try:
        with telemetry.span("scaling"):
            steps = Attempts("scaling")
            steps.do("idle times", partial(auto_idle.set_idle_times, system))
            steps.do("clusters", partial(scaling.scale_clusters, system))
            steps.end()
    finally:  # budgets are enforced even if a cluster refuses
        with telemetry.span("keep books"):
            charge_costs.keep_books(system)
        telemetry.measure_clusters(system)


@blueprint.timer_trigger("timer", retention_schedule(os.environ))
@attributed
def retention_timer(timer: func.TimerRequest) -> None:
    """Delete the data outside of the routes' retention."""
    from shared import daily

    daily.run_daily(bootstrap.system(), bootstrap.removals(), bootstrap.post())
