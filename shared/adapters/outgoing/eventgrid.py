"""Send lifecycle events to a custom topic of Event Grid, as CloudEvents 1.0."""

from __future__ import annotations

import logging
import threading
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shared.adapters.azureml.circuit import Circuit
from shared.adapters.translation import translated
from shared.kernel.settings import EventTopic

if TYPE_CHECKING:
    from azure.eventgrid import EventGridPublisherClient

_SOURCE = "/trainyard"
_TYPE_PREFIX = "Trainyard."
# Few retries, and timeouts in seconds: a refused event is queued and retried. The options are passed per event, as the
# SDK does not apply its client's options to a topic.
_TRIES = {"retry_total": 1, "retry_backoff_factor": 0.5}
_PATIENCE: dict[str, Any] = {**_TRIES, "connection_timeout": 5, "read_timeout": 10}


class TopicEvents:
    def __init__(self, topic: EventTopic) -> None:
        self._topic = topic
        self._lock = threading.Lock()
        self._circuit = Circuit("Event Grid")

    def publish(self, kind: str, subject: str, data: dict[str, Any], event_id: str, at: datetime) -> None:
        from azure.core.messaging import CloudEvent

        event = CloudEvent(
            source=_SOURCE, type=f"{_TYPE_PREFIX}{kind}", subject=subject, data=data, id=event_id, time=at
        )
        with self._lock:
            client = self._client
        with self._circuit.call(), translated(f"could not publish {kind} of {subject}"):
            client.send(event, **_PATIENCE)

    def close(self) -> None:
        """Close the connection if it is open. The next event opens a new connection."""
        with self._lock:
            if client := self.__dict__.pop("_client", None):
                client.close()

    @cached_property
    def _client(self) -> EventGridPublisherClient:
        from azure.core.credentials import AzureKeyCredential
        from azure.eventgrid import EventGridPublisherClient

        if self._topic.key:
            credential: Any = AzureKeyCredential(self._topic.key)
        else:
            from azure.identity import DefaultAzureCredential

            credential = DefaultAzureCredential()
        logging.getLogger("azure.eventgrid").setLevel(logging.ERROR)  # it warns about missing attributes of an event
        return EventGridPublisherClient(self._topic.endpoint, credential)
