"""The configuration file, read once. Subscriptions have the form of Microsoft.EventGrid/…/eventSubscriptions, so a
deployed definition can be used unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulators.eventgrid import filters
from emulators.eventgrid.delivery import AZURE_RESOURCE, WEBHOOK, Policy
from emulators.eventgrid.filters import BadFilter, Filter
from emulators.eventgrid.schema import EVENT_GRID, SCHEMAS

WEEK_SECONDS = 7 * 24 * 3600
ENDPOINT_TYPES = ("StorageQueue", "WebHook")


class BadConfig(ValueError):
    """An invalid configuration. The message has the key, the value and the allowed values."""


@dataclass(frozen=True)
class Topic:
    """With `source` "storage" the topic has the blob events. With a `key`, publishers must send the key."""

    name: str
    resource: str
    source: str | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class QueueTarget:
    queue: str
    seconds_to_live: int = WEEK_SECONDS


@dataclass(frozen=True)
class WebhookTarget:
    url: str = field(repr=False)  # may hold a function key


@dataclass(frozen=True)
class Subscription:
    name: str
    topic: str
    schema: str
    target: QueueTarget | WebhookTarget
    filter: Filter
    policy: Policy
    dead_letter_container: str | None = None


@dataclass(frozen=True)
class Config:
    host: str
    port: int
    certs: Path
    state: Path
    connection_string: str = field(repr=False)
    access_log: Path
    topics: tuple[Topic, ...]
    subscriptions: tuple[Subscription, ...]
    make_destinations: bool = False  # create the destinations of subscriptions, which Azure does not


def read(raw: Mapping[str, Any]) -> Config:
    """Read the configuration. Raises BadConfig."""
    try:
        topics = tuple(Topic(t["name"], t["resource"], t.get("source"), t.get("key")) for t in raw["topics"])
        scale = float(raw.get("retry_time_scale", 1.0))
        config = Config(
            raw.get("host", "127.0.0.1"),
            int(raw.get("port", 0)),
            Path(raw["certs"]),
            Path(raw["state"]),
            raw["storage"]["connection_string"],
            Path(raw["storage"]["access_log"]),
            topics,
            tuple(_subscription(item, scale) for item in raw.get("subscriptions", ())),
            bool(raw.get("make_destinations", False)),
        )
    except KeyError as missing:
        raise BadConfig(f"the configuration has no {missing.args[0]!r}") from None
    _check(config)
    return config


def _check(config: Config) -> None:
    names = [topic.name for topic in config.topics]
    for subscription in config.subscriptions:
        if subscription.topic not in names:
            raise BadConfig(f"subscription {subscription.name}: no topic {subscription.topic!r} among {names}")
    for what, used in (("topic", names), ("subscription", [s.name for s in config.subscriptions])):
        if len(set(used)) < len(used):
            raise BadConfig(f"two {what}s have one name: {sorted(used)}")
    if sum(topic.source is not None for topic in config.topics) > 1:
        raise BadConfig("only one topic can have the source 'storage'")
    for topic in config.topics:
        if topic.source not in (None, "storage"):
            raise BadConfig(f"topic {topic.name}: source {topic.source!r}; the only one there is: 'storage'")


def _subscription(item: Mapping[str, Any], scale: float) -> Subscription:
    name, schema = item["name"], item.get("eventDeliverySchema") or EVENT_GRID
    if schema not in SCHEMAS:
        raise BadConfig(f"subscription {name}: eventDeliverySchema {schema!r}; choose one of {', '.join(SCHEMAS)}")
    try:
        wanted = filters.read(item.get("filter") or {})
    except BadFilter as error:
        raise BadConfig(f"subscription {name}: {error}") from error
    target = _target(name, item)
    container = _dead_letter_container(item)
    return Subscription(
        name,
        item["topic"],
        schema,
        target,
        wanted,
        _policy(name, item, target, scale, container is not None),
        container,
    )


def _target(name: str, item: Mapping[str, Any]) -> QueueTarget | WebhookTarget:
    # With delivery by identity the destination is one level deeper.
    destination = item.get("destination") or item["deliveryWithResourceIdentity"]["destination"]
    kind, properties = destination["endpointType"], destination["properties"]
    if kind == "StorageQueue":
        return QueueTarget(
            properties["queueName"], int(properties.get("queueMessageTimeToLiveInSeconds") or WEEK_SECONDS)
        )
    if kind == "WebHook":
        return WebhookTarget(properties["endpointUrl"])
    raise BadConfig(f"subscription {name}: endpointType {kind!r}; choose one of {', '.join(ENDPOINT_TYPES)}")


def _dead_letter_container(item: Mapping[str, Any]) -> str | None:
    by_identity = item.get("deadLetterWithResourceIdentity") or {}
    destination = item.get("deadLetterDestination") or by_identity.get("deadLetterDestination")
    return destination["properties"]["blobContainerName"] if destination else None


def _policy(
    name: str, item: Mapping[str, Any], target: QueueTarget | WebhookTarget, scale: float, dead_letters: bool
) -> Policy:
    spec = item.get("retryPolicy") or {}
    attempts, minutes = int(spec.get("maxDeliveryAttempts", 30)), int(spec.get("eventTimeToLiveInMinutes", 1440))
    if not (1 <= attempts <= 30 and 1 <= minutes <= 1440):
        raise BadConfig(
            f"subscription {name}: maxDeliveryAttempts {attempts} must be from 1 to 30, "
            f"eventTimeToLiveInMinutes {minutes} from 1 to 1440"
        )
    rules = WEBHOOK if isinstance(target, WebhookTarget) else AZURE_RESOURCE
    return Policy(rules, attempts, minutes * 60, scale, dead_letters)
