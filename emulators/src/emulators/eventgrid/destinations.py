"""Destinations of events: a storage queue or a webhook, which both answer with an HTTP status, and the dead-letter
container."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import ssl
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from emulators.eventgrid import schema
from emulators.eventgrid.config import QueueTarget, Subscription, Topic, WebhookTarget
from emulators.eventgrid.delivery import NO_ANSWER, Delivery
from emulators.eventgrid.storage import Storage

RESPONSE_SECONDS = 30  # Azure's timeout for a webhook
HANDSHAKE_RETRY_SECONDS = 0.5
ORIGIN = "eventgrid.azure.net"

log = logging.getLogger(__name__)


class Destination(Protocol):
    async def open(self) -> None:
        """Return when deliveries can begin."""

    async def send(self, delivery: Delivery) -> int:
        """Make one attempt. Returns the HTTP status, or NO_ANSWER. Never raises an error of the endpoint."""

    async def close(self) -> None:
        """Close the connections."""


class Queue:
    """Sends each event as one queue message: JSON in base64, as Azure does. Storage answers 413 above 64 KiB."""

    def __init__(self, target: QueueTarget, storage: Storage) -> None:
        self._target = target
        self._storage = storage

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    async def send(self, delivery: Delivery) -> int:
        text = base64.b64encode(delivery.body.encode()).decode()
        try:
            return await self._storage.put_message(self._target.queue, text, self._target.seconds_to_live)
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("queue %s does not answer: %r", self._target.queue, error)
            return NO_ANSWER


class Webhook:
    """Sends each event in its own POST: an array of one event in the Event Grid schema, or one structured
    CloudEvent.

    Events are delivered only after the endpoint has agreed: by echoing the validation code, by a GET of the validation
    URL, or, for CloudEvents, by answering OPTIONS. The validation is repeated until the endpoint agrees; Azure asks
    once, and otherwise refuses the subscription.
    """

    def __init__(self, subscription: Subscription, topic: Topic, bundle: Path, base_url: str) -> None:
        assert isinstance(subscription.target, WebhookTarget)
        self._url = subscription.target.url
        self._name = subscription.name
        self._cloud = subscription.schema == schema.CLOUD
        self._topic = topic
        self._code = str(uuid.uuid4()).upper()
        self._validation_url = f"{base_url}/validate/{self._name}?id={self._code}"
        self._agreed = asyncio.Event()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(bundle))),
            timeout=aiohttp.ClientTimeout(total=RESPONSE_SECONDS),
        )

    @property
    def agreed(self) -> bool:
        return self._agreed.is_set()

    def agree(self, code: str) -> bool:
        """Complete the manual handshake, after a GET of the validation URL. Returns whether the code is right."""
        if code == self._code:
            self._agreed.set()
        return code == self._code

    async def close(self) -> None:
        await self._session.close()

    async def open(self) -> None:
        last = ""
        while not self.agreed:
            refusal = await self._handshake()
            if refusal and refusal != last:
                log.warning("webhook %s: no handshake yet: %s", self._name, refusal)
            last = refusal
            if refusal:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._agreed.wait(), HANDSHAKE_RETRY_SECONDS)

    async def _handshake(self) -> str:
        """Send one validation request. Returns why the endpoint is not validated, or '' if it is."""
        try:
            agreed = await (self._ask_cloud() if self._cloud else self._ask())
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return repr(error)
        if not agreed:
            return "the endpoint answered, but did not accept"
        self._agreed.set()
        return ""

    async def _ask(self) -> bool:
        event = schema.validation(self._topic.resource, self._code, self._validation_url)
        headers = self._headers("SubscriptionValidation", 0)
        async with self._session.post(self._url, data=json.dumps([event]), headers=headers) as answer:
            if answer.status not in (200, 202):
                return False
            body: Any = json.loads(await answer.text() or "null")
            return isinstance(body, dict) and body.get("validationResponse") == self._code

    async def _ask_cloud(self) -> bool:
        async with self._session.options(self._url, headers={"WebHook-Request-Origin": ORIGIN}) as answer:
            return answer.status == 200 and answer.headers.get("WebHook-Allowed-Origin") in ("*", ORIGIN)

    async def send(self, delivery: Delivery) -> int:
        body = delivery.body if self._cloud else f"[{delivery.body}]"
        headers = self._headers("Notification", delivery.attempts)
        try:
            async with self._session.post(self._url, data=body.encode(), headers=headers) as answer:
                await answer.read()
                return answer.status
        except TimeoutError:
            return 408
        except aiohttp.ClientError as error:
            log.warning("webhook %s does not answer: %r", self._name, error)
            return NO_ANSWER

    def _headers(self, kind: str, attempts: int) -> dict[str, str]:
        content_type = "application/cloudevents+json" if self._cloud else "application/json"
        return {
            "Content-Type": f"{content_type}; charset=utf-8",
            "aeg-event-type": kind,
            "aeg-subscription-name": self._name.upper(),
            "aeg-delivery-count": str(attempts),
            "aeg-metadata-version": "1.0" if self._cloud else "1",
            "WebHook-Request-Origin": ORIGIN,
        }


async def dead_letter(delivery: Delivery, subscription: Subscription, storage: Storage) -> int:
    """Write the dead-letter blob. Its name has the subscription in upper case and the hour, as in Azure."""
    now = datetime.now(UTC)
    name = f"{subscription.name.upper()}/{now.year}/{now.month}/{now.day}/{now.hour}/{uuid.uuid4()}.json"
    assert subscription.dead_letter_container is not None
    content = json.dumps([json.loads(delivery.body) | _obituary(delivery, subscription.schema)]).encode()
    try:
        return await storage.put_blob(subscription.dead_letter_container, name, content)
    except (aiohttp.ClientError, TimeoutError) as error:
        log.warning("dead-letter container %s does not answer: %r", subscription.dead_letter_container, error)
        return NO_ANSWER


def _obituary(delivery: Delivery, event_schema: str) -> dict[str, Any]:
    facts = {
        "deadLetterReason": delivery.reason,
        "deliveryAttempts": delivery.attempts,
        "lastDeliveryOutcome": delivery.outcome,
        "publishTime": schema.timestamp(datetime.fromtimestamp(delivery.published, UTC)),
        "lastDeliveryAttemptTime": schema.timestamp(datetime.fromtimestamp(delivery.last_attempt, UTC)),
    }
    # attribute names of CloudEvents are lower case
    return {key.lower(): value for key, value in facts.items()} if event_schema == schema.CLOUD else facts
