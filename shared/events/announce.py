"""Lifecycle events of our own: sent to the topic where they arise.

One that the topic does not take is queued, and tried again from there, so that its outage stops nothing else. Both come
before the write that makes the event so: who dies in between tells it again under the same id.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from shared.events.messages import Announce, Notify
from shared.events.ports import HasAudience, HasEvents
from shared.kernel.errors import TrainyardError
from shared.kernel.has import HasClock, HasQueues
from shared.kernel.message import is_old


class Ports(HasClock, HasQueues, HasEvents, HasAudience, Protocol):
    """What is needed here from outside."""


def announce(ports: Ports, kind: str, subject: str, data: dict[str, Any]) -> None:
    """Send an event to the topic, if there is one. The same (kind, subject) is the same event."""
    if ports.events is not None:
        message = Announce(kind, subject, ports.clock(), data)
        try:
            publish(ports, message)
        except TrainyardError:
            ports.queues.send(message)


def tell(ports: Ports, kind: str, subject: str, data: dict[str, Any], after: float = 0.0) -> None:
    """Queue an event for those who want notices, to be read after so many seconds."""
    if ports.audience is None or ports.audience.anyone():
        ports.queues.send(Notify(kind, subject, ports.clock(), data), after)


def publish(ports: Ports, message: Announce) -> None:
    """Send an event to the topic. Does nothing if the topic was taken away meanwhile."""
    if ports.events is not None:
        event_id = f"{message.kind}:{message.subject}"
        ports.events.publish(message.kind, message.subject, message.data, event_id=event_id, at=message.at)


def is_published(ports: Ports, message: Announce) -> bool:
    """Whether there is no topic, or the event is old."""
    return ports.events is None or is_old(ports.clock(), message.at)


def happened_at(ports: Ports, message: Announce | Notify) -> datetime:  # noqa: ARG001 - others ask the ports
    return message.at
