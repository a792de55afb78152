"""Lifecycle events of our own: sent to the topic where they arise.

One that the topic does not take is queued, and tried again from there, so that its outage stops nothing else. Both come
before the write that makes the event so: who dies in between tells it again under the same id.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from shared.events.ports import HasAudience, HasEvents
from shared.kernel.errors import BadMessage, TrainyardError
from shared.kernel.has import HasClock, HasQueues
from shared.kernel.places import ANNOUNCEMENTS, NOTICES


class Ports(HasClock, HasQueues, HasEvents, HasAudience, Protocol):
    """What is needed here from outside."""


def announce(ports: Ports, kind: str, subject: str, data: dict[str, Any]) -> None:
    """Send an event to the topic, if there is one. The same (kind, subject) is the same event."""
    if ports.events is not None:
        message = _message(ports, kind, subject, data)
        try:
            publish(ports, message)
        except TrainyardError:
            ports.queues.send(ANNOUNCEMENTS, message)


def tell(ports: Ports, kind: str, subject: str, data: dict[str, Any], after: float = 0.0) -> None:
    """Queue an event for those who want notices, to be read after so many seconds."""
    if ports.audience is None or ports.audience.anyone():
        ports.queues.send(NOTICES, _message(ports, kind, subject, data), after)


def _message(ports: Ports, kind: str, subject: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "subject": subject, "at": ports.clock().isoformat(), "data": data}


def publish(ports: Ports, message: dict[str, Any]) -> None:
    """Send an event to the topic. Does nothing if the topic was taken away meanwhile."""
    if ports.events is None:
        return
    try:
        kind, subject, at = message["kind"], message["subject"], datetime.fromisoformat(message["at"])
        data = message["data"]
    except (KeyError, TypeError, ValueError) as exc:
        raise BadMessage(f"No announcement: {exc!r} in {str(message)[:200]}.") from exc
    ports.events.publish(kind, subject, data, event_id=f"{kind}:{subject}", at=at)
