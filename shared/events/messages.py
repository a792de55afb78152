"""The messages of our own events: on their way to the topic, and to those who want notices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.kernel.message import Message


@dataclass(frozen=True)
class Announce(
    Message,
    queue="announcements",
    handler="shared.events.announce:publish",
    done="shared.events.announce:is_published",
    news_since="shared.events.announce:happened_at",
):
    """Send an event of ours to the topic, which did not take it at once. The same (kind, subject) is the same event."""

    kind: str
    subject: str
    at: datetime
    data: dict[str, Any]


@dataclass(frozen=True)
class Notify(
    Message,
    queue="notices",
    handler="shared.notices.deliver:spread",
    done="shared.notices.deliver:is_spread",
    news_since="shared.events.announce:happened_at",
):
    """Tell those who subscribed of an event. `after`: the subscription that was told last, by an earlier message."""

    kind: str
    subject: str
    at: datetime
    data: dict[str, Any]
    after: str = ""
