"""What notices need from outside: their records, and ways to send."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.kernel.versioned import Stored
from shared.notices.model import Delivery, Subscription
from shared.runs.ports import RunPorts


class Notices(Protocol):
    """The subscriptions, and one delivery for each of their events."""

    def add(self, subscription: Subscription) -> None:
        """Store a new subscription. Raises Changed if its id is taken."""

    def get(self, subscription: str) -> Subscription | None:
        """The subscription, or None."""

    def all(self) -> list[Subscription]:
        """All subscriptions, by id. One that can't be read is left out, and stops no other."""

    def remove(self, subscription: str) -> bool:
        """Remove it; its deliveries stay. False if it was not there."""

    def insert(self, delivery: Delivery) -> bool:
        """Add a delivery. False, and nothing changes, if this subscription has one of this event."""

    def delivery(self, subscription: str, event: str) -> Stored[Delivery] | None:
        """The delivery of an event to a subscription, or None."""

    def update(self, stored: Stored[Delivery], **changes: Any) -> Stored[Delivery]:
        """Merge these fields. Raises Changed unless it still is as it was read."""

    def prune(self, before: datetime, limit: int) -> int:
        """Forget up to `limit` deliveries of events from before then, of any subscription. Returns how many. An event
        that is told once more after that would be a new one."""

    def newest(self, subscription: str, limit: int = 50) -> list[Delivery]:
        """Up to `limit` deliveries of a subscription, the newest event first."""


@dataclass(frozen=True)
class Answer:
    """What an endpoint said: its status, and how many seconds it asks to be left alone."""

    status: int
    retry_after: float = 0.0


class Sender(Protocol):
    """Sends once, within CLAIM_SECONDS. Raises Unavailable where nobody answered; its words hold no address."""

    def post(self, address: str, body: bytes, headers: dict[str, str]) -> Answer:
        """POST to a web address and follow no redirect. Raises Impossible for one that is not to be sent to."""

    def mail(self, to: str, subject: str, text: str, event: str) -> None:
        """Send a mail; `event` makes its Message-ID. Raises Impossible where no mail server is configured."""

    @property
    def reaches_inside(self) -> bool:
        """Whether plain http and addresses inside may be sent to: on a laptop."""


@dataclass(frozen=True)
class Post:
    """Where notices are kept, and how they are sent."""

    notices: Notices
    sender: Sender


class NoticePorts(RunPorts, Protocol):
    """Those of runs, and the post."""

    @property
    def post(self) -> Post: ...
