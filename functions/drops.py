"""Uploads: their events, and the looks at a drop that they cause."""

from __future__ import annotations

import azure.functions as func

from functions import telemetry
from functions.attribution import attributed
from functions.on_demand import on_demand
from shared.bootstrap import check_routes
from shared.bootstrap import system as the_system
from shared.kernel import places
from shared.kernel.drop_key import DropKey

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
        with telemetry.span("note upload", drop="/".join(written.name.split("/")[:2])):
            collect.note_upload(the_system(), written.name, written.at, form)


@blueprint.queue_trigger("message", places.DROP_CHECKS, STORAGE)
@attributed
def drop_checks(message: func.QueueMessage) -> None:
    """A look at a drop that may be complete."""
    check = incoming.decode(message.get_body())
    key = DropKey(incoming.text(check, "route"), incoming.text(check, "name"))
    with telemetry.span("look at drop", drop=str(key)):
        collect.check_drop(the_system(), key, incoming.text(check, "token"), bool(check.get("last")))
