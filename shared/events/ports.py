"""Ports for Trainyard's own events."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from shared.kernel.ports import StoragePorts


class Events(Protocol):
    """Trainyard's own lifecycle events, sent to the subscribers of the custom topic."""

    def publish(self, kind: str, subject: str, data: dict[str, Any], event_id: str, at: datetime) -> None:
        """Send one event. Consumers recognize a repeat by the event_id.

        Raises a TrainyardError within seconds, and immediately while the topic is known not to answer.
        """


class Audience(Protocol):
    """The subscribers to notices."""

    def anyone(self) -> bool:
        """Return whether any subscription exists. False may be ten seconds old, except for subscriptions that this
        process added.
        """

    def wants(self, kind: str) -> bool:
        """Return whether any subscription asks for notices of this kind."""

    def pending(self, subscription: str, event: str) -> datetime | None:
        """Return the time of a pending event for the subscription. None after the delivery, or if no delivery will
        follow.
        """


class EventPorts(StoragePorts, Protocol):
    """The ports of storage, the topic, and the audience."""

    @property
    def events(self) -> Events | None: ...
    @property
    def audience(self) -> Audience | None: ...
