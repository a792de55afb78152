"""The external ports of notices: their records, and ways to send."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.kernel.versioned import Stored
from shared.notices.model import Delivery, Subscription
from shared.runs.ports import RunPorts


class Notices(Protocol):
    """The subscriptions, and one delivery per subscription and event."""

    def add(self, subscription: Subscription) -> None:
        """Store a new subscription. Raises Changed for a taken id."""

    def get(self, subscription: str) -> Subscription | None:
        """Return the subscription, or None."""

    def all(self) -> list[Subscription]:
        """Return every subscription by id. An unreadable subscription is skipped."""

    def remove(self, subscription: str) -> bool:
        """Delete the subscription; the deliveries stay. Return False for a missing subscription."""

    def insert(self, delivery: Delivery) -> bool:
        """Insert a delivery. Return False, and change nothing, if this subscription already has a delivery of this
        event.
        """

    def delivery(self, subscription: str, event: str) -> Stored[Delivery] | None:
        """Return the delivery of an event to a subscription, or None."""

    def update(self, stored: Stored[Delivery], **changes: Any) -> Stored[Delivery]:
        """Merge these fields. Raises Changed if the delivery changed since the read."""

    def prune(self, before: datetime, limit: int) -> int:
        """Delete up to `limit` deliveries of events before `before`, across subscriptions. Return how many.

        An event that is repeated afterwards counts as new.
        """

    def newest(self, subscription: str, limit: int = 50) -> list[Delivery]:
        """Return up to `limit` deliveries of a subscription, newest event first."""


@dataclass(frozen=True)
class Answer:
    """An endpoint's answer: the status, and the requested pause in seconds before the next try."""

    status: int
    retry_after: float = 0.0


class Sender(Protocol):
    """Sends once, within CLAIM_SECONDS. Raises Unavailable without an answer; the error shows no address."""

    def post(self, address: str, body: bytes, headers: dict[str, str]) -> Answer:
        """POST to a web address without following redirects. Raises Impossible for an address that is not allowed."""

    def mail(self, to: str, subject: str, text: str, event: str) -> None:
        """Send a mail; `event` becomes its Message-ID. Raises Impossible if no mail server is configured."""

    @property
    def reaches_inside(self) -> bool:
        """Return whether plain http and addresses inside the network are allowed, as on a laptop."""


@dataclass(frozen=True)
class Post:
    """The store of notices, and their sender."""

    notices: Notices
    sender: Sender


class NoticePorts(RunPorts, Protocol):
    """The ports of runs, and the post."""

    @property
    def post(self) -> Post: ...
