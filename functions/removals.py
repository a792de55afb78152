"""Removals: carried out one by one, and retention once a day."""

import os
from datetime import datetime

import azure.functions as func

from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import post as the_post
from shared.bootstrap import removals as the_removals
from shared.bootstrap import system as the_system
from shared.kernel import places
from shared.kernel.index_settings import retention_schedule

with on_demand():
    from shared import daily
    from shared.events import incoming
    from shared.removals import model, remove

blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"


@blueprint.queue_trigger("message", places.REMOVALS, STORAGE)
@attributed
def removals_queue(message: func.QueueMessage) -> None:
    """Something that was asked to go."""
    body = incoming.decode(message.get_body())
    at = datetime.fromisoformat(incoming.text(body, "asked_at"))
    what = model.What(incoming.text(body, "what"))
    remove.carry_out(the_system(), the_removals(), what, incoming.text(body, "name"), at)


@blueprint.timer_trigger("timer", retention_schedule(os.environ))
@attributed
def retention_timer(timer: func.TimerRequest) -> None:
    """Let go what the routes keep no longer."""
    daily.look_after(the_system(), the_removals(), the_post())
