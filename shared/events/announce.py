"""Lifecycle events of our own: sent to the topic where they arise.

One that the topic does not take is queued, and tried again from there, so that its outage stops nothing else. Both come
before the write that makes the event so: who dies in between tells it again under the same id.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shared.kernel.errors import BadMessage, TrainyardError
from shared.kernel.places import ANNOUNCEMENTS, NOTICES
from shared.system import System


def announce(system: System, kind: str, subject: str, data: dict[str, Any]) -> None:
    """Tell an event to the topic, if there is one. The same (kind, subject) is the same event, however often told."""
    if system.events is not None:
        message = _message(system, kind, subject, data)
        try:
            publish(system, message)
        except TrainyardError:
            system.queues.send(ANNOUNCEMENTS, message)


def tell(system: System, kind: str, subject: str, data: dict[str, Any], after: float = 0.0) -> None:
    """Queue an event for those who want notices, to be read after so many seconds."""
    if system.audience is None or system.audience.anyone():
        system.queues.send(NOTICES, _message(system, kind, subject, data), after)


def _message(system: System, kind: str, subject: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "subject": subject, "at": system.clock().isoformat(), "data": data}


def publish(system: System, message: dict[str, Any]) -> None:
    """Send an event to the topic. Does nothing if the topic was taken away meanwhile."""
    if system.events is None:
        return
    try:
        kind, subject, at = message["kind"], message["subject"], datetime.fromisoformat(message["at"])
        data = message["data"]
    except (KeyError, TypeError, ValueError) as exc:
        raise BadMessage(f"No announcement: {exc!r} in {str(message)[:200]}.") from exc
    system.events.publish(kind, subject, data, event_id=f"{kind}:{subject}", at=at)
