"""The Event Grid function, in a blueprint as in larger apps."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import azure.functions as func

events = func.Blueprint()


@events.event_grid_trigger(arg_name="event")
def on_event(event: func.EventGridEvent) -> None:
    facts = {
        "kind": "event",
        "id": event.id,
        "subject": event.subject,
        "type": getattr(event, "event_type", None) or getattr(event, "type", None),
        "data": event.get_json() if hasattr(event, "get_json") else event.data,
    }
    line = json.dumps(facts, sort_keys=True)
    logging.getLogger("sample").info(line)
    with Path(os.environ["SAMPLE_RECORD"]).open("a") as out:
        out.write(line + "\n")
    if facts["data"].get("fail"):
        raise ValueError("event told to fail")
