"""Notices in memory: their records, and an endpoint that the test controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from shared.kernel.errors import Changed, Impossible
from shared.kernel.versioned import Stored
from shared.notices.model import Delivery, DeliveryState, Subscription
from shared.notices.ports import Answer
from tests.fakes.records import Etags


class FakeNotices:
    def __init__(self) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self.rows: dict[tuple[str, str], Stored[Delivery]] = {}
        self._etags = Etags()

    def add(self, subscription: Subscription) -> None:
        if subscription.id in self.subscriptions:
            raise Changed(f"There is a subscription {subscription.id} already.")
        self.subscriptions[subscription.id] = subscription

    def anyone(self) -> bool:
        return bool(self.subscriptions)

    def wants(self, kind: str) -> bool:
        return any(kind in each.on for each in self.subscriptions.values())

    def pending(self, subscription: str, event: str) -> datetime | None:
        stored = self.rows.get((subscription, event))
        return stored.value.notice.at if stored and stored.value.state is DeliveryState.PENDING else None

    def get(self, subscription: str) -> Subscription | None:
        return self.subscriptions.get(subscription)

    def all(self) -> list[Subscription]:
        return [self.subscriptions[name] for name in sorted(self.subscriptions)]

    def remove(self, subscription: str) -> bool:
        return self.subscriptions.pop(subscription, None) is not None

    def insert(self, delivery: Delivery) -> bool:
        key = delivery.subscription, delivery.notice.id
        if key in self.rows:
            return False
        self.rows[key] = Stored(delivery, self._etags.next())
        return True

    def delivery(self, subscription: str, event: str) -> Stored[Delivery] | None:
        return self.rows.get((subscription, event))

    def update(self, stored: Stored[Delivery], **changes: Any) -> Stored[Delivery]:
        key = stored.value.subscription, stored.value.notice.id
        if self.rows[key].etag != stored.etag:
            raise Changed(f"delivery {key} changed in between")
        self.rows[key] = Stored(replace(stored.value, **changes), self._etags.next())
        return self.rows[key]

    def prune(self, before: datetime, limit: int) -> int:
        old = [key for key, row in self.rows.items() if row.value.notice.at < before][:limit]
        for key in old:
            del self.rows[key]
        return len(old)

    def newest(self, subscription: str, limit: int = 50) -> list[Delivery]:
        found = [row.value for (name, _), row in self.rows.items() if name == subscription]
        return sorted(found, key=lambda delivery: delivery.notice.at, reverse=True)[:limit]


@dataclass
class FakeSender:
    """`answers` is what a post returns; `posts` and `mails` are what arrived."""

    answers: Callable[[], Answer] = lambda: Answer(200)
    has_mail: bool = True
    reaches_inside: bool = False
    posts: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)
    mails: list[tuple[str, str, str, str]] = field(default_factory=list)

    def post(self, address: str, body: bytes, headers: dict[str, str]) -> Answer:
        answer = self.answers()
        if answer.status < 300:
            self.posts.append((address, body, headers))
        return answer

    def mail(self, to: str, subject: str, text: str, event: str) -> None:
        if not self.has_mail:
            raise Impossible("No mail server is configured: TRAINYARD_SMTP_URL is not set.", "no_mail")
        self.mails.append((to, subject, text, event))
