"""Which configurations are refused, and how deployed definitions are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulators.eventgrid import config
from emulators.eventgrid.config import BadConfig, Config, QueueTarget

QUEUE = {"endpointType": "StorageQueue", "properties": {"queueName": "q"}}
SUBSCRIPTION = {"name": "s", "topic": "t", "destination": QUEUE}


def read(subscription: dict[str, Any] | None = None, **rest: Any) -> Config:
    raw = {
        "certs": "certs",
        "state": "state",
        "storage": {"connection_string": "Secret=1", "access_log": "log"},
        "topics": [{"name": "t", "resource": "/t", "key": "hidden-key"}],
        "subscriptions": [subscription or SUBSCRIPTION],
        **rest,
    }
    return config.read(raw)


def test_defaults_are_those_of_azure() -> None:
    """The defaults are 30 attempts, a time to live of one day, the Event Grid schema, messages that live seven
    days, and real time."""
    settings = read()
    (subscription,) = settings.subscriptions
    assert (settings.host, settings.port, settings.state) == ("127.0.0.1", 0, Path("state"))
    assert (subscription.policy.max_attempts, subscription.policy.ttl_seconds) == (30, 86400)
    assert (subscription.policy.scale, subscription.schema) == (1.0, "EventGridSchema")
    assert subscription.target == QueueTarget("q", 7 * 86400)


def test_delivery_by_identity_is_read_as_deployed() -> None:
    """A definition with managed identities can be used unchanged from the Bicep."""
    grave = {"endpointType": "StorageBlob", "properties": {"resourceId": "/x", "blobContainerName": "dead"}}
    identity = {"type": "SystemAssigned"}
    (subscription,) = read(
        {
            "name": "s",
            "topic": "t",
            "deliveryWithResourceIdentity": {"identity": identity, "destination": QUEUE},
            "deadLetterWithResourceIdentity": {"identity": identity, "deadLetterDestination": grave},
        }
    ).subscriptions
    assert subscription.target == QueueTarget("q")
    assert subscription.dead_letter_container == "dead"
    assert subscription.policy.dead_letters


def test_secrets_do_not_show() -> None:
    """The repr of a configuration contains no keys, connection strings or webhook URLs."""
    hook = {"endpointType": "WebHook", "properties": {"endpointUrl": "http://x/?code=hidden-code"}}
    text = repr(read({**SUBSCRIPTION, "destination": hook}))
    assert "hidden" not in text
    assert "Secret" not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topic": "none"}, r"subscription s: no topic 'none' among \['t'\]"),
        ({"eventDeliverySchema": "Custom"}, "eventDeliverySchema 'Custom'; choose one of EventGridSchema"),
        ({"destination": {"endpointType": "EventHub", "properties": {}}}, "'EventHub'; choose one of StorageQueue"),
        ({"retryPolicy": {"maxDeliveryAttempts": 31}}, "maxDeliveryAttempts 31 must be from 1 to 30"),
        ({"retryPolicy": {"eventTimeToLiveInMinutes": 0}}, "eventTimeToLiveInMinutes 0 from 1 to 1440"),
        ({"filter": {"advancedFilters": [{"operatorType": "X", "key": "k"}]}}, "subscription s: unknown operatorType"),
        ({"destination": {"properties": {}}}, "no 'endpointType'"),
    ],
)
def test_a_bad_subscription_is_named(change: dict[str, Any], message: str) -> None:
    """The error has the subscription, the key, the value and the allowed values."""
    with pytest.raises(BadConfig, match=message):
        read({**SUBSCRIPTION, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subscriptions": [SUBSCRIPTION, SUBSCRIPTION]}, "two subscriptions have one name"),
        ({"topics": [{"name": "t", "resource": "/t"}] * 2}, "two topics have one name"),
        ({"topics": [{"name": "t", "resource": "/t", "source": "s3"}]}, "source 's3'"),
        ({"topics": [{"name": n, "resource": "/", "source": "storage"} for n in "tu"]}, "only one topic can have"),
    ],
)
def test_a_bad_configuration_is_named(change: dict[str, Any], message: str) -> None:
    """Duplicate names, and a second source of blob events, are refused."""
    with pytest.raises(BadConfig, match=message):
        read(**change)
