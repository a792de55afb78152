"""Models: their challengers."""

from __future__ import annotations

import azure.functions as func

from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system
from shared.kernel import places

with on_demand():
    from shared.events import incoming
    from shared.models import challenge

blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"


@blueprint.queue_trigger("message", places.PROMOTIONS, STORAGE)
@attributed
def promotions_queue(message: func.QueueMessage) -> None:
    """A run of a route that names a model, to be held against its champion."""
    body = incoming.decode(message.get_body())
    challenge.challenge(the_system(), incoming.text(body, "run"))
