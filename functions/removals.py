"""Removals: carried out one by one, and retention once a day."""

import os

import azure.functions as func

from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import post as the_post
from shared.bootstrap import removals as the_removals
from shared.bootstrap import system as the_system
from shared.kernel.index_settings import retention_schedule

with on_demand():
    from shared import daily

blueprint = func.Blueprint()


@blueprint.timer_trigger("timer", retention_schedule(os.environ))
@attributed
def retention_timer(timer: func.TimerRequest) -> None:
    """Let go what the routes keep no longer."""
    daily.look_after(the_system(), the_removals(), the_post())
