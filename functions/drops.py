"""Uploads: their events, and the looks at a drop that they cause."""

from __future__ import annotations

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from functions.going_on import going_on, look_at_drop
from functions.on_demand import on_demand
from shared.bootstrap import check_routes
from shared.kernel import places

with on_demand():
    from shared.drops import collect
    from shared.events import incoming

check_routes()
blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"


@blueprint.queue_trigger("message", places.DROP_EVENTS, STORAGE)
@attributed
def drop_events(message: func.QueueMessage) -> None:
    """A blob event that Event Grid put on the queue."""
    body = message.get_body()
    event = incoming.decode(body)
    _note(event, incoming.form(body, event))


@blueprint.event_grid_trigger("event")
@attributed
def drop_event(event: str) -> None:
    """The same event, from an Event Grid subscription that calls the function directly."""
    _note(incoming.decode(event.encode()), "by a direct call")


def _note(event: incoming.Json, form: str) -> None:
    written = incoming.blob_written(event)
    if written and written.container == places.DROPS_CONTAINER:
        drop = "/".join(written.name.split("/")[:2])
        with going_on() as system, telemetry.span("note upload", drop=drop):
            collect.note_upload(system, written.name, written.at, form)


@blueprint.queue_trigger("message", places.DROP_CHECKS, STORAGE)
@attributed
def drop_checks(message: func.QueueMessage) -> None:
    """A look at a drop that may be complete."""
    with going_on() as system:
        look_at_drop(system, incoming.decode(message.get_body()))
