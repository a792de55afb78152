"""Where our own events go."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from shared.kernel.ports import StoragePorts


class Events(Protocol):
    """Lifecycle events of our own, to whoever subscribes to the custom topic."""

    def publish(self, kind: str, subject: str, data: dict[str, Any], event_id: str, at: datetime) -> None:
        """Send one event. The same event_id twice is one event to a consumer that looks at ids.

        Raises what a TrainyardError is within seconds, and at once while the topic is known not to answer.
        """


class Audience(Protocol):
    """Those who want notices."""

    def anyone(self) -> bool:
        """Whether there is a subscription. False may be ten seconds old, except for those that this process added."""

    def pending(self, subscription: str, event: str) -> datetime | None:
        """When the event was of which the subscription is still to be told. None if it was told, or never will be."""


class EventPorts(StoragePorts, Protocol):
    """Those of storage, and who is told of events."""

    @property
    def events(self) -> Events | None: ...
    @property
    def audience(self) -> Audience | None: ...
