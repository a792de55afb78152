"""Uploads: their events, and the looks at a drop that they cause."""

import azure.functions as func

from shared import messages, system
from shared.bootstrap import check_routes
from shared.bootstrap import system as the_system
from shared.model import DropKey
from shared.service import drops

check_routes()
blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"


@blueprint.queue_trigger("message", system.DROP_EVENTS, STORAGE)
def drop_events(message: func.QueueMessage) -> None:
    """A blob event that Event Grid put on the queue."""
    _note(messages.decode(message.get_body()))


@blueprint.event_grid_trigger("event")
def drop_event(event: str) -> None:
    """The same event, from an Event Grid subscription that calls the function directly."""
    _note(messages.decode(event.encode()))


def _note(event: messages.Json) -> None:
    written = messages.blob_written(event)
    if written and written.container == system.DROPS_CONTAINER:
        drops.note_upload(the_system(), written.name, written.at)


@blueprint.queue_trigger("message", system.DROP_CHECKS, STORAGE)
def drop_checks(message: func.QueueMessage) -> None:
    """A look at a drop that may be complete."""
    check = messages.decode(message.get_body())
    key = DropKey(messages.text(check, "route"), messages.text(check, "name"))
    drops.check_drop(the_system(), key, messages.text(check, "token"), bool(check.get("last")))
