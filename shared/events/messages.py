"""The messages that carry Trainyard's own events to the topic and to subscribers of notices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.kernel.message import BACKGROUND, Message


@dataclass(frozen=True)
class Announce(
    Message,
    queue=BACKGROUND,
    handler="shared.events.announce:publish",
    done="shared.events.announce:is_published",
    news_since="shared.events.announce:happened_at",
):
    """Send an event to the topic again, after a refusal. Events with equal (kind, subject) are one event."""

    kind: str
    subject: str
    at: datetime
    data: dict[str, Any]


@dataclass(frozen=True)
class Notify(
    Message,
    queue=BACKGROUND,
    handler="shared.notices.deliver:spread",
    done="shared.notices.deliver:is_spread",
    news_since="shared.events.announce:happened_at",
):
    """Notify subscribers of an event. `after`: the last subscription that an earlier message of this event handled."""

    kind: str
    subject: str
    at: datetime
    data: dict[str, Any]
    after: str = ""
