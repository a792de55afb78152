"""The timer that asks after jobs whose events were lost."""

from __future__ import annotations

import os

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import schedules as the_schedules
from shared.bootstrap import system as the_system
from shared.kernel.index_settings import reconcile_schedule

with on_demand():
    from shared import reconcile

blueprint = func.Blueprint()


@blueprint.timer_trigger("timer", reconcile_schedule(os.environ))
@attributed
def reconcile_timer(timer: func.TimerRequest) -> None:
    """Make true what events did not tell."""
    try:
        with telemetry.span("reconcile"):
            reconcile.reconcile(the_system(), the_schedules())
    finally:
        telemetry.measure_queues(the_system())
