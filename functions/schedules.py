"""Schedules: the looks at them."""

import azure.functions as func

from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import schedules as the_schedules
from shared.bootstrap import system as the_system
from shared.kernel import places

with on_demand():
    from shared.events import incoming
    from shared.schedules import fire

blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"


@blueprint.queue_trigger("message", places.SCHEDULE_LOOKS, STORAGE)
@attributed
def schedule_looks(message: func.QueueMessage) -> None:
    """A look at a schedule whose time may have come."""
    body = incoming.decode(message.get_body())
    fire.look(the_system(), the_schedules(), incoming.text(body, "schedule"), str(body.get("meant", "")))
