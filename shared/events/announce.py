"""Trainyard's own lifecycle events, sent to the topic at their origin.

If the topic refuses an event, the event is queued and retried, so that an outage of the topic stops nothing else. The
event is sent or queued before the write that makes it true: after a crash in between it is sent again with the same id.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shared.events.messages import Announce, Notify
from shared.events.ports import EventPorts
from shared.kernel.errors import TrainyardError
from shared.kernel.message import is_old
from shared.kernel.ports import StoragePorts


def announce(ports: EventPorts, kind: str, subject: str, data: dict[str, Any]) -> None:
    """Send an event to the topic, if a topic exists. Events with equal (kind, subject) are one event."""
    if ports.events is not None:
        message = Announce(kind, subject, ports.clock(), data)
        try:
            publish(ports, message)
        except TrainyardError:
            ports.queues.send(message)


def queue_notice(ports: EventPorts, kind: str, subject: str, data: dict[str, Any], after: float = 0.0) -> None:
    """Queue an event for the subscribers to notices. The message becomes visible after `after` seconds."""
    if ports.audience is None or ports.audience.anyone():
        ports.queues.send(Notify(kind, subject, ports.clock(), data), after)


def publish(ports: EventPorts, message: Announce) -> None:
    """Send an event to the topic. Does nothing if the topic was removed from the settings meanwhile."""
    if ports.events is not None:
        event_id = f"{message.kind}:{message.subject}"
        ports.events.publish(message.kind, message.subject, message.data, event_id=event_id, at=message.at)


def is_published(ports: EventPorts, message: Announce) -> bool:
    """Return whether the event is old, or the app has no topic."""
    return ports.events is None or is_old(ports.clock(), message.at)


def happened_at(ports: StoragePorts, message: Announce | Notify) -> datetime:  # noqa: ARG001 - others ask the ports
    return message.at
