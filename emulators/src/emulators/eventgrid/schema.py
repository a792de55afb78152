"""The shape of events that publishers send and subscribers get, in both of Event Grid's schemas. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from emulators.eventgrid.accesslog import CREATED, DELETED, BlobFacts, Write

EVENT_GRID = "EventGridSchema"
CLOUD = "CloudEventSchemaV1_0"
SCHEMAS = (EVENT_GRID, CLOUD)
VALIDATION = "Microsoft.EventGrid.SubscriptionValidationEvent"

CLOUD_REQUIRED = ("id", "source", "type", "specversion")
EVENT_GRID_REQUIRED = ("id", "subject", "eventType", "eventTime", "data", "dataVersion")
# An event's id is a hash of its log line, so that reading a line twice repeats the same event.
NAMESPACE = uuid.UUID("6f1d6d0e-8c1c-4b41-9d43-0b2f3e0c6d51")


class BadEvents(ValueError):
    """A publisher's request that is not an array of events. The message has the event and the key."""


@dataclass(frozen=True)
class Event:
    """An event between publisher and subscribers. `topic` is the topic's resource id. `extras` are the CloudEvents
    attributes that the Event Grid schema does not have."""

    topic: str
    source: str
    id: str
    type: str
    subject: str
    time: str
    data: Any
    data_version: str = ""
    extras: Mapping[str, Any] = field(default_factory=dict)


def timestamp(moment: datetime) -> str:
    """Format a time in RFC 3339, in UTC with seven decimals, as Azure does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "0Z"


def blob_subject(write: Write) -> str:
    return f"/blobServices/default/containers/{write.container}/blobs/{write.blob}"


def blob_event(write: Write, facts: BlobFacts | None, topic: str, endpoint: str) -> Event:
    """Return the event of one operation. Without `facts` (the blob no longer existed when it was read) the event
    lacks the keys that come from the blob. The access log has no request ids, so each line gets a generated id."""
    event_id = str(uuid.uuid5(NAMESPACE, f"{write.began} {write.offset} {write.path} {write.time.timestamp()}"))
    data = {
        "api": write.api,
        "clientRequestId": str(uuid.uuid5(NAMESPACE, event_id)),
        "requestId": event_id[:-6] + "000000",
        **_facts(facts, write.event),
        "url": endpoint.removesuffix("/" + write.account) + write.path,
        "sequencer": f"{write.began:016X}{write.offset:016X}",
        "storageDiagnostics": {"batchId": str(uuid.uuid5(NAMESPACE, str(write.began)))},
    }
    return Event(topic, topic, event_id, write.event, blob_subject(write), timestamp(write.time), data)


def _facts(facts: BlobFacts | None, event: str) -> dict[str, Any]:
    """Return the facts about the blob that Azure includes in an event of this type."""
    if facts is None:
        return {}
    etag = {"eTag": facts.etag} if event == CREATED else {}
    length = {"contentLength": facts.content_length} if event != DELETED else {}
    return {**etag, "contentType": facts.content_type, **length, "blobType": facts.blob_type}


def parse(body: Any, topic: str) -> list[Event]:
    """Read a publisher's body: an array of events, each in either schema, or a single event. Raises BadEvents."""
    items = body if isinstance(body, list) else [body]
    return [_parse_one(item, index, topic) for index, item in enumerate(items)]


def _parse_one(item: Any, index: int, topic: str) -> Event:
    if not isinstance(item, dict):
        raise BadEvents(f"event {index} is not a JSON object")
    if "specversion" in item:
        _require(item, index, CLOUD_REQUIRED)
        _require(item, index, tuple(key for key in ("subject", "time") if item.get(key) is not None))
        return _from_cloud(item, topic)
    _require(item, index, EVENT_GRID_REQUIRED)
    if item.get("topic") not in (None, "", topic):
        raise BadEvents(f"event {index} has topic {item['topic']!r:.200}; leave it out, or give this topic: {topic}")
    return Event(
        topic,
        topic,
        item["id"],
        item["eventType"],
        item["subject"],
        item["eventTime"],
        item["data"],
        item["dataVersion"],
    )


def _require(item: dict[str, Any], index: int, keys: tuple[str, ...]) -> None:
    for key in keys:
        if key not in item:
            raise BadEvents(f"event {index} has no {key!r}; it needs {', '.join(keys)}")
        if key != "data" and not isinstance(item[key], str):
            raise BadEvents(f"event {index}: {key!r} must be a string, not {item[key]!r:.80}")


def _from_cloud(item: dict[str, Any], topic: str) -> Event:
    own = {*CLOUD_REQUIRED, "subject", "time", "data"}
    return Event(
        topic,
        item["source"],
        item["id"],
        item["type"],
        item.get("subject") or "",
        item.get("time") or timestamp(datetime.now(UTC)),
        item.get("data"),
        extras={key: value for key, value in item.items() if key not in own},
    )


def render(event: Event, schema: str) -> dict[str, Any]:
    """Return the event as a subscriber gets it. An event in the other schema is converted. Azure only converts from
    the Event Grid schema to CloudEvents; this emulator converts both ways."""
    return _cloud(event) if schema == CLOUD else _event_grid(event)


def _event_grid(event: Event) -> dict[str, Any]:
    return {
        "topic": event.topic,
        "subject": event.subject,
        "eventType": event.type,
        "eventTime": event.time,
        "id": event.id,
        "data": event.data,
        "dataVersion": event.data_version,
        "metadataVersion": "1",
    }


def _cloud(event: Event) -> dict[str, Any]:
    # data_base64 and data exclude each other
    data = {} if "data_base64" in event.extras else {"data": event.data}
    return {
        "source": event.source,
        "subject": event.subject,
        "type": event.type,
        "time": event.time,
        "id": event.id,
        **data,
        **event.extras,
        "specversion": "1.0",
    }


def validation(topic: str, code: str, url: str) -> dict[str, Any]:
    """Return the validation event for a webhook. The webhook accepts the subscription with the answer
    {"validationResponse": code}."""
    return {
        "id": str(uuid.uuid4()),
        "topic": topic,
        "subject": "",
        "data": {"validationCode": code, "validationUrl": url},
        "eventType": VALIDATION,
        "eventTime": timestamp(datetime.now(UTC)),
        "metadataVersion": "1",
        "dataVersion": "1",
    }
