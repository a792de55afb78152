"""Requests and answers about subscriptions and their deliveries. No answer holds a whole address."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.kernel.encode import model_of, plain_fields
from shared.kernel.person import Person
from shared.kernel.ports import StoragePorts
from shared.kernel.reply import Reply
from shared.notices import model, subscribe
from shared.notices.model import Channel, DeliveryState, NoticeKind
from shared.notices.ports import Post
from shared.runs.ports import RunPorts

Json = dict[str, Any]

SubscriptionName = Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}$")]
_KINDS = ", ".join(kind for kind in NoticeKind if kind is not NoticeKind.TEST)


class SubscriptionRequest(Struct, forbid_unknown_fields=True):
    """The notices for a subscriber. Without route and experiment, the subscription covers every run."""

    on: Annotated[list[str], Meta(min_length=1, max_length=10, description=f"Out of {_KINDS}.")]
    to: Annotated[str, Meta(min_length=3, max_length=2000, description="https://... or a mail address. A secret.")]
    channel: Annotated[Channel | None, Meta(description="Default: derived from the address.")] = None
    route: Annotated[str, Meta(max_length=200)] = ""
    experiment: Annotated[str, Meta(max_length=255)] = ""

    def spec(self) -> subscribe.SubscriptionSpec:
        return subscribe.SubscriptionSpec(self.on, self.to, self.channel or "", self.route, self.experiment)


SubscriptionAnswer = model_of(
    __name__,
    model.Subscription,
    {"to": Annotated[str, Meta(description="The address, partly hidden.")]},
    ("to", "secret"),
)


class NewSubscription(Struct):
    id: str
    channel: Channel
    to: str
    secret: Annotated[
        str, Meta(description="The secret that signs deliveries to a webhook; shown only once. Otherwise empty.")
    ]


class DeliveryAnswer(Struct):
    event: str
    kind: NoticeKind
    title: str
    at: datetime
    state: DeliveryState
    tries: int
    next_at: datetime | None
    done_at: datetime | None
    error: str


class RemovedSubscription(Struct):
    id: str


class Tested(Struct):
    id: str
    event: str


def list_subscriptions(post: Post) -> Annotated[list[Json], list[SubscriptionAnswer]]:
    return [_shown(each) for each in post.notices.all()]


def add_subscription(
    ports: StoragePorts, post: Post, body: SubscriptionRequest, key: str | None, by: Person
) -> Annotated[Reply, {201: NewSubscription}]:
    made = subscribe.subscribe(ports, post, body.spec(), by, key)
    answer = {"id": made.id, "channel": str(made.channel), "to": made.shown, "secret": made.secret}
    return Reply(answer, 201, {"Location": f"/api/notices/{made.id}", "Cache-Control": "no-store"})


def remove_subscription(post: Post, subscription: SubscriptionName) -> Annotated[Json, RemovedSubscription]:
    subscribe.unsubscribe(post, subscription)
    return {"id": subscription}


def test_subscription(ports: RunPorts, post: Post, subscription: SubscriptionName) -> Annotated[Json, Tested]:
    return {"id": subscription, "event": subscribe.send_test(ports, post, subscription)}


def list_deliveries(post: Post, subscription: SubscriptionName) -> Annotated[list[Json], list[DeliveryAnswer]]:
    """Return the deliveries of an existing or deleted subscription. Raises NotFound."""
    newest = post.notices.newest(subscription)
    if not newest:
        subscribe.known(post, subscription)
    return [_delivery(each) for each in newest]


def _shown(subscription: model.Subscription) -> Json:
    plain = plain_fields(subscription, ("to", "secret", "on"))
    return plain | {"on": [str(kind) for kind in subscription.on], "to": subscription.shown}


def _delivery(delivery: model.Delivery) -> Json:
    notice = delivery.notice
    return {
        "event": notice.id,
        "kind": str(notice.kind),
        "title": notice.title,
        "at": notice.at.isoformat(),
        **plain_fields(delivery, ("subscription", "notice")),
    }
