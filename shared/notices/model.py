"""Notices, their subscriptions, and the outcome of each delivery.

    lifecycle event -> notice -> one delivery for each subscription that wants it -> delivered | gave_up

An event may be repeated with the same id; a subscription has one delivery per id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

_WEB = re.compile(r"(https?)://(?:[^/?#]*@)?(\[[0-9a-fA-F:.]*\]|[\w.-]+)")


class NoticeKind(StrEnum):
    """The kinds of notices."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EVICTED = "evicted"
    LATE = "late"
    BUDGET = "budget"
    IDLE = "idle"
    SICK = "sick"  # a running run hangs, wastes its time, or will fail
    SCHEDULE = "schedule"
    POISON = "poison"
    MODEL = "model"
    TEST = "test"  # requested by a person


class Channel(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    TEAMS = "teams"
    MAIL = "mail"


@dataclass(frozen=True)
class Notice:
    """A notice. `facts` are names and values for people, in display order."""

    id: str
    kind: NoticeKind
    title: str
    at: datetime
    facts: dict[str, str] = field(default_factory=dict)
    run: str = ""
    route: str = ""
    experiment: str = ""


@dataclass(frozen=True)
class Subscription:
    """A request for notices of these kinds, for every run, one route or one experiment. `to` and `secret` are never
    shown.
    """

    id: str
    on: tuple[NoticeKind, ...]
    channel: Channel
    to: str = field(repr=False)
    created_at: datetime
    owner: str = ""
    route: str = ""
    experiment: str = ""
    secret: str = field(default="", repr=False)
    owner_id: str = ""  # the owner's object id in Entra ID

    @property
    def shown(self) -> str:
        """Return the address without its secret part, which would allow sending."""
        return masked(self.to)


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    GAVE_UP = "gave_up"


@dataclass(frozen=True)
class Delivery:
    """One notice for one subscription. `next_at` is the earliest time of the next try."""

    subscription: str
    notice: Notice
    state: DeliveryState = DeliveryState.PENDING
    tries: int = 0
    next_at: datetime | None = None
    done_at: datetime | None = None
    error: str = ""


def masked(address: str) -> str:
    """Return `https://hooks.slack.com/...` or `a...@example.org`: enough to recognize an address, too little to use
    it.
    """
    if "@" in address and "://" not in address:
        name, _, domain = address.rpartition("@")
        return f"{name[:1]}...@{domain}"
    match = _WEB.match(address)
    return f"{match[1]}://{match[2]}/..." if match else "..."
