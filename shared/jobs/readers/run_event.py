"""Read Azure ML's job events: the job, and the status of the job. Pure.

https://learn.microsoft.com/azure/event-grid/event-schema-machine-learning
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.events.incoming import Json, event_data, event_time, event_type, text
from shared.kernel.errors import BadMessage


def job_of(event: Json) -> str | None:
    """The job of an Azure ML run event (for a pipeline's step: the pipeline), or None for other events.

    Keys are read in any case.
    """
    if not event_type(event).startswith("Microsoft.MachineLearningServices.Run"):
        return None
    data = {key.lower(): value for key, value in event_data(event).items()}
    return _pipeline_of(data) or text(data, "runid")


def status_of(event: Json) -> str:
    """The job status in an Azure ML run event, '' if it has none. The status may be outdated."""
    data = {key.lower(): value for key, value in event_data(event).items()}
    status = data.get("runstatus")
    return status if isinstance(status, str) and not _pipeline_of(data) else ""


def time_of(event: Json) -> datetime | None:
    """Return when the event occurred; None for a missing or unreadable time, because the event still counts."""
    try:
        return event_time(event)
    except BadMessage:
        return None


def _pipeline_of(data: Mapping[str, Any]) -> str:
    """The outermost pipeline of which the event's run is a step; '' for any other run."""
    properties = data.get("runproperties")
    run_properties = properties if isinstance(properties, dict) else {}
    pipeline = run_properties.get("azureml.rootpipelinerunid") or run_properties.get("azureml.pipelinerunid")
    return pipeline if isinstance(pipeline, str) and pipeline != data.get("runid") else ""
