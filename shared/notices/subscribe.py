"""Subscriptions: add, remove, test."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field, replace

from shared.kernel.errors import Changed, NotFound
from shared.kernel.idempotency import id_for, used_for_another
from shared.kernel.person import NOBODY, Person
from shared.kernel.ports import StoragePorts
from shared.notices.address import read_address
from shared.notices.compose import compose
from shared.notices.decide import read_kinds
from shared.notices.deliver import begin
from shared.notices.model import Channel, Subscription
from shared.notices.ports import Post
from shared.notices.render import SECRET_PREFIX
from shared.runs.ports import RunPorts

_SECRET_BYTES = 32


@dataclass(frozen=True)
class SubscriptionSpec:
    """A requested subscription."""

    on: list[str]
    to: str = field(repr=False)
    channel: str = ""
    route: str = ""
    experiment: str = ""


def subscribe(
    ports: StoragePorts, post: Post, spec: SubscriptionSpec, owner: Person = NOBODY, key: str | None = None
) -> Subscription:
    """Store a subscription. A repeated key returns the existing subscription.

    Raises Impossible for invalid kinds or a bad address, without showing the address, and Conflict if the key was used
    for a different request. A webhook gets its own secret, which signs its notices.
    """
    channel, address = read_address(spec.to, spec.channel, post.sender.reaches_inside)
    subscription = Subscription(
        id=id_for("n", key, ports.new_token),
        on=read_kinds(spec.on),
        channel=channel,
        to=address,
        created_at=ports.clock(),
        owner=owner.name,
        owner_id=owner.id,
        route=spec.route,
        experiment=spec.experiment,
        secret=_secret() if channel is Channel.WEBHOOK else "",
    )
    if key and (made := post.notices.get(subscription.id)):
        return _same(made, subscription)
    try:
        post.notices.add(subscription)
    except Changed:
        if not (key and (made := post.notices.get(subscription.id))):
            raise
        return _same(made, subscription)
    return subscription


def _same(made: Subscription, asked: Subscription) -> Subscription:
    """Return the existing subscription of an equal request. Raises Conflict."""
    if replace(asked, created_at=made.created_at, secret=made.secret) != made:
        raise used_for_another(f"subscription {made.id}")
    return made


def unsubscribe(post: Post, name: str) -> None:
    """Delete the subscription. Pending deliveries are abandoned."""
    if not post.notices.remove(name):
        raise _unknown(name)


def send_test(ports: RunPorts, post: Post, name: str) -> str:
    """Send a test notice to one subscription of any kind. Return the event's id."""
    subscription = known(post, name)
    subject = f"{name}/{ports.new_token()}"
    notice = compose(ports.runs, "Test", subject, ports.clock(), {"asked for": name})
    assert notice is not None
    begin(ports.queues, post, subscription, notice)
    return notice.id


def known(post: Post, name: str) -> Subscription:
    """Return the subscription. Raises NotFound."""
    subscription = post.notices.get(name)
    if subscription is None:
        raise _unknown(name)
    return subscription


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no subscription {name[:80]!r}; `notify list` shows the existing ones.")


def _secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
