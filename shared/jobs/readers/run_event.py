"""Azure ML's events of jobs, read: which job, and the status that the event tells. Pure.

https://learn.microsoft.com/azure/event-grid/event-schema-machine-learning
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.events.incoming import Json, event_data, event_type, text


def job_of(event: Json) -> str | None:
    """The job that an Azure ML run event is about (of a pipeline's step: the pipeline), or None for other events. Keys
    are read whatever their case."""
    if not event_type(event).startswith("Microsoft.MachineLearningServices.Run"):
        return None
    data = {key.lower(): value for key, value in event_data(event).items()}
    return _pipeline_of(data) or text(data, "runid")


def status_of(event: Json) -> str:
    """The status that an Azure ML run event tells of its job, '' if it names none. It may be old by now."""
    data = {key.lower(): value for key, value in event_data(event).items()}
    status = data.get("runstatus")
    return status if isinstance(status, str) and not _pipeline_of(data) else ""


def _pipeline_of(data: Mapping[str, Any]) -> str:
    """The pipeline of which the event's run is a step, the outermost; '' for any other run."""
    properties = data.get("runproperties")
    run_properties = properties if isinstance(properties, dict) else {}
    pipeline = run_properties.get("azureml.rootpipelinerunid") or run_properties.get("azureml.pipelinerunid")
    return pipeline if isinstance(pipeline, str) and pipeline != data.get("runid") else ""
