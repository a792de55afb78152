"""Notices: their way to those who subscribed."""

import azure.functions as func

from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import post as the_post
from shared.bootstrap import system as the_system
from shared.kernel import places

with on_demand():
    from shared.events import incoming
    from shared.notices import deliver

blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"


@blueprint.queue_trigger("message", places.NOTICES, STORAGE)
@attributed
def notices_queue(message: func.QueueMessage) -> None:
    """An event that people may want to be told of."""
    deliver.spread(the_system(), the_post(), incoming.decode(message.get_body()))


@blueprint.queue_trigger("message", places.DELIVERIES, STORAGE)
@attributed
def deliveries_queue(message: func.QueueMessage) -> None:
    """One notice on its way to one subscription."""
    body = incoming.decode(message.get_body())
    deliver.deliver(the_system(), the_post(), incoming.text(body, "subscription"), incoming.text(body, "notice"))
