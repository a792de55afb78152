"""Turn an event into deliveries, and a delivery into sends.

Both handlers may run twice and crash anywhere. A delivery is recorded before its message is sent, and a try holds the
delivery by its etag, so two messages of one delivery never send at the same time. Only a lost answer causes a second
send of the same id.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from shared.events.messages import Notify
from shared.events.ports import EventPorts
from shared.kernel.clock import Clock
from shared.kernel.errors import Changed, Impossible, Unavailable
from shared.kernel.message import is_old
from shared.kernel.storage import Queues
from shared.kernel.versioned import Stored
from shared.notices import render
from shared.notices.compose import compose
from shared.notices.decide import CLAIM_SECONDS, KEPT, TRIES, pause, wants
from shared.notices.messages import DeliverNotice
from shared.notices.model import Channel, Delivery, DeliveryState, Notice, Subscription
from shared.notices.ports import NoticePorts, Post, Sender

log = logging.getLogger(__name__)

PATIENCE = timedelta(minutes=2)  # well below functionTimeout, after which the host ends the worker
PRUNED_AT_ONCE = 5000  # a thousand take two seconds to delete; the rest follows the next day
_HELD = "It is being tried."  # the delivery's error while a try holds it


def spread(ports: NoticePorts, message: Notify) -> None:
    """Make a delivery for each subscription that wants this event. After PATIENCE, a new message continues.

    A repeated event makes no new deliveries.
    """
    post, until = ports.post, ports.clock() + PATIENCE
    subscriptions = sorted((each for each in post.notices.all() if each.id > message.after), key=lambda each: each.id)
    event = message.kind, message.subject, message.at, message.data
    if not subscriptions or (notice := compose(ports.runs, *event)) is None:
        return
    for subscription in subscriptions:
        if wants(subscription, notice):
            begin(ports.queues, post, subscription, notice)
        if ports.clock() > until:
            ports.queues.send(replace(message, after=subscription.id))
            return


def begin(queues: Queues, post: Post, subscription: Subscription, notice: Notice) -> None:
    """Record the delivery and send the delivery's message. A repeat completes a crashed call."""
    if not post.notices.insert(Delivery(subscription.id, notice)):
        stored = post.notices.delivery(subscription.id, notice.id)
        if stored is None or stored.value.state is not DeliveryState.PENDING or stored.value.tries:
            return
    _send_message(queues, subscription.id, notice.id)


def deliver(ports: NoticePorts, message: DeliverNotice) -> None:
    """Try a due delivery once, unless another handler is trying. The delivery is then done, or a retry is queued."""
    post, subscription_id, event = ports.post, message.subscription, message.notice
    stored = post.notices.delivery(subscription_id, event)
    if stored is None or stored.value.state is not DeliveryState.PENDING:
        return
    now, due = ports.clock(), stored.value.next_at
    if due is not None and due - now > timedelta(seconds=1):
        # The holder may have crashed, or this clock may lag behind the requester's: check again when it is due.
        _send_message(ports.queues, subscription_id, event, (due - now).total_seconds() + 1)
        return
    subscription = post.notices.get(subscription_id)
    if subscription is None:
        post.notices.update(stored, state=DeliveryState.GAVE_UP, error="The subscription was removed.", done_at=now)
        return
    try:
        held = post.notices.update(
            stored, tries=stored.value.tries + 1, next_at=now + timedelta(seconds=CLAIM_SECONDS), error=_HELD
        )
    except Changed:
        return  # another message of this delivery was faster
    _try(ports.queues, ports.clock, post, subscription, held)


def prune(clock: Clock, post: Post) -> int:
    """Delete old deliveries, as many as a timer has time for. Return how many."""
    pruned = post.notices.prune(clock() - KEPT, PRUNED_AT_ONCE)
    if pruned:
        log.info("notices: forgot %d deliveries from before %s", pruned, KEPT)
    return pruned


def _try(queues: Queues, clock: Clock, post: Post, subscription: Subscription, held: Stored[Delivery]) -> None:
    delivery = held.value
    try:
        wait, error = _send(clock, post.sender, subscription, delivery.notice)
    except Impossible as exc:
        post.notices.update(held, state=DeliveryState.GAVE_UP, error=str(exc), done_at=clock())
        return
    except Unavailable as exc:
        wait, error = 0.0, str(exc)
    now = clock()
    if not error:
        post.notices.update(held, state=DeliveryState.DELIVERED, error="", next_at=None, done_at=now)
        log.info("notice %s: delivered to %s", delivery.notice.id, subscription.shown)
    elif delivery.tries >= TRIES:
        post.notices.update(held, state=DeliveryState.GAVE_UP, error=error, done_at=now)
        log.error("notice %s: given up for %s. %s", delivery.notice.id, subscription.shown, error)
    else:
        delay = pause(delivery.tries, wait)
        _send_message(
            queues, subscription.id, delivery.notice.id, delay
        )  # send first: after a crash here this message retries
        post.notices.update(held, error=error, next_at=now + timedelta(seconds=delay))


def _send(clock: Clock, sender: Sender, subscription: Subscription, notice: Notice) -> tuple[float, str]:
    """Return the seconds until the next try and the error; '' if the notice arrived."""
    if subscription.channel is Channel.MAIL:
        subject, text = render.mail(notice)
        sender.mail(subscription.to, subject, text, notice.id)
        return 0.0, ""
    body, headers = render.request(subscription, notice, clock())
    answer = sender.post(subscription.to, body, headers)
    if 200 <= answer.status < 300:
        return 0.0, ""
    if answer.status == 410:
        raise Impossible(f"{subscription.shown} no longer exists: it answered 410.", "gone")
    return answer.retry_after, f"{subscription.shown} answered {answer.status}."


def _send_message(queues: Queues, subscription: str, event: str, delay: float = 0.0) -> None:
    queues.send(DeliverNotice(subscription, event), delay)


def is_spread(ports: EventPorts, message: Notify) -> bool:
    """Return whether the event is old, or has no subscribers."""
    nobody = ports.audience is not None and not ports.audience.anyone()
    return nobody or is_old(ports.clock(), message.at)


def is_delivered(ports: EventPorts, message: DeliverNotice) -> bool:
    """Return whether the notice was delivered, or never will be."""
    return ports.audience is not None and pending_since(ports, message) is None


def pending_since(ports: EventPorts, message: DeliverNotice) -> datetime | None:
    return ports.audience.pending(message.subscription, message.notice) if ports.audience else None
