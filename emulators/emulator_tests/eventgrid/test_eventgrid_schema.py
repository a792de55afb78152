"""The shape of events matches Microsoft's published definitions and samples."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from azure.core.messaging import CloudEvent
from azure.eventgrid import EventGridEvent
from jsonschema import Draft4Validator, FormatChecker

from emulator_tests.places import SPECS
from emulators.eventgrid import schema
from emulators.eventgrid.accesslog import CREATED, DELETED, INITIATED, TIER_CHANGED, BlobFacts, Write
from emulators.eventgrid.schema import CLOUD, EVENT_GRID, BadEvents, Event

DATA_PLANE = SPECS / "azure-rest-api-specs" / "specification" / "eventgrid" / "data-plane"
SAMPLES = SPECS / "eventgrid-docs-samples"
needs_specs = pytest.mark.skipif(not DATA_PLANE.exists(), reason=f"Microsoft's definitions are not at {DATA_PLANE}")

TOPIC = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/a"
ENDPOINT = "http://127.0.0.1:1/acct"
TIME = datetime(2026, 11, 21, 3, 43, 16, tzinfo=UTC)
FACTS = BlobFacts('"0x8D4BCC2E4835CD0"', "text/plain", 524288, "BlockBlob")


def write(
    offset: int = 42, began: int = 7, blob: str = "a b/é.txt", path: str = "/acct/c/a%20b/%C3%A9.txt",
    event: str = CREATED,
) -> Write:  # fmt: skip
    return Write("PutBlob", "acct", "c", blob, path, TIME, began, offset, event=event)


def blob_event(facts: BlobFacts | None = FACTS) -> Event:
    return schema.blob_event(write(), facts, TOPIC, ENDPOINT)


def definition(file: str, name: str) -> Draft4Validator:
    spec = json.loads((DATA_PLANE / file).read_text())
    schema_of_it = {"$ref": f"#/definitions/{name}", "definitions": spec["definitions"]}
    return Draft4Validator(schema_of_it, format_checker=FormatChecker())


def sample(name: str) -> dict[str, Any]:
    return dict(json.loads((SAMPLES / name).read_text())[0])


@needs_specs
@pytest.mark.parametrize("facts", [FACTS, None])
def test_blob_events_keep_to_the_published_definitions(facts: BlobFacts | None) -> None:
    """Envelope and data validate against Microsoft's OpenAPI, even if the blob was already deleted."""
    event = blob_event(facts)
    stable = "Microsoft.EventGrid/stable/2018-01-01/EventGrid.json"
    definition(stable, "EventGridEvent").validate(schema.render(event, EVENT_GRID))
    definition(stable, "CloudEventEvent").validate(schema.render(event, CLOUD))
    definition("Microsoft.Storage/stable/2018-01-01/Storage.json", "StorageBlobCreatedEventData").validate(event.data)


@needs_specs
@pytest.mark.parametrize(
    ("kind", "name", "absent"),
    [
        (DELETED, "StorageBlobDeletedEventData", {"identity"}),
        (TIER_CHANGED, "StorageBlobTierChangedEventData", {"identity"}),
        (INITIATED, "StorageAsyncOperationInitiatedEventData", {"identity"}),
    ],
)
def test_every_kind_of_blob_event_has_the_published_keys(kind: str, name: str, absent: set[str]) -> None:
    """The event of a deleted blob and of a changed tier has exactly the keys of Microsoft's definition, except the
    requester's identity, which belongs to Data Lake."""
    published = definition("Microsoft.Storage/stable/2018-01-01/Storage.json", name)
    event = schema.blob_event(write(event=kind), FACTS, TOPIC, ENDPOINT)
    published.validate(event.data)
    document: Any = published.schema
    keys = document["definitions"][name]["properties"].keys()
    assert (event.type, event.data.keys()) == (kind, keys - absent)


@needs_specs
@pytest.mark.parametrize(
    ("event_schema", "name"),
    [(EVENT_GRID, "BlobCreated.event-grid-schema.json"), (CLOUD, "BlobCreated.cloud-event-schema.json")],
)
def test_blob_events_have_the_keys_of_the_published_samples(event_schema: str, name: str) -> None:
    """Our events have exactly the keys of Microsoft's samples, with values of the same types."""
    ours, theirs = schema.render(blob_event(), event_schema), sample(name)
    assert {k: type(v) for k, v in ours.items()} == {k: type(v) for k, v in theirs.items()}
    assert {k: type(v) for k, v in ours["data"].items()} == {k: type(v) for k, v in theirs["data"].items()}


@needs_specs
def test_validation_events_have_the_keys_of_the_published_sample() -> None:
    """The event of the handshake has the keys of Microsoft's sample."""
    ours, theirs = schema.validation(TOPIC, "code", "url"), sample("SubscriptionValidation.event-grid-schema.json")
    assert ours.keys() == theirs.keys()
    assert ours["data"].keys() == theirs["data"].keys()
    assert ours["eventType"] == theirs["eventType"]


def test_a_blob_event_says_what_was_written() -> None:
    """The name in the subject is decoded, the URL is as the client sent it, and the blob's facts are copied."""
    event = blob_event()
    assert event.subject == "/blobServices/default/containers/c/blobs/a b/é.txt"
    assert event.time == "2026-11-21T03:43:16.0000000Z"
    assert event.data["url"] == "http://127.0.0.1:1/acct/c/a%20b/%C3%A9.txt"
    assert (event.data["eTag"], event.data["contentLength"]) == ('"0x8D4BCC2E4835CD0"', 524288)
    assert (event.data["contentType"], event.data["blobType"]) == ("text/plain", "BlockBlob")


def test_an_event_without_its_blob_has_the_facts_of_the_log() -> None:
    """The event of a deleted blob lacks only the facts that the blob itself would give."""
    missing = blob_event().data.keys() - blob_event(None).data.keys()
    assert missing == {"eTag", "contentType", "contentLength", "blobType"}


def test_the_same_line_gives_the_same_event_and_another_another() -> None:
    """Each write has its own id. A line that is read twice repeats the same event."""
    ids = [
        schema.blob_event(write(offset, began), FACTS, TOPIC, ENDPOINT).id
        for offset, began in [(1, 1), (2, 1), (1, 2), (1, 1)]
    ]
    assert len(set(ids)) == 3
    assert ids[0] == ids[3]


def test_sequencers_sort_as_the_writes_came() -> None:
    """Comparing two sequencers as strings gives the order of the writes, even across replaced logs."""
    places = [(9, 1), (10, 1), (255, 1), (256, 1), (0, 2), (1 << 40, 2), (3, 17)]
    sequencers = [
        schema.blob_event(write(offset, began), FACTS, TOPIC, ENDPOINT).data["sequencer"] for offset, began in places
    ]
    assert sequencers == sorted(sequencers)
    assert len(set(map(len, sequencers))) == 1


def test_the_sdk_reads_both_schemas() -> None:
    """Microsoft's own classes parse our deliveries."""
    event = blob_event()
    assert EventGridEvent.from_json(json.dumps(schema.render(event, EVENT_GRID))).event_type == CREATED
    cloud: CloudEvent[Any] = CloudEvent.from_json(json.dumps(schema.render(event, CLOUD)))
    assert (cloud.type, cloud.subject) == (CREATED, event.subject)


EVENT_GRID_EVENT = {
    "id": "1",
    "subject": "s",
    "eventType": "T",
    "eventTime": "2026-11-21T03:00:00Z",
    "data": {"a": 1},
    "dataVersion": "2",
}
CLOUD_EVENT = {"specversion": "1.0", "id": "1", "source": "/me", "type": "T", "data": {"a": 1}, "tenant": "blue"}


def test_published_events_come_out_as_they_went_in() -> None:
    """An event that is delivered in its original schema keeps every attribute. The service adds the topic."""
    (event,) = schema.parse([EVENT_GRID_EVENT], TOPIC)
    assert schema.render(event, EVENT_GRID) == {**EVENT_GRID_EVENT, "topic": TOPIC, "metadataVersion": "1"}
    (event,) = schema.parse([{**CLOUD_EVENT, "time": "2026-11-21T03:00:00Z"}], TOPIC)
    assert schema.render(event, CLOUD) == {**CLOUD_EVENT, "time": "2026-11-21T03:00:00Z", "subject": ""}


def test_the_schemas_convert() -> None:
    """An event published in one schema can be delivered in the other."""
    (event,) = schema.parse([EVENT_GRID_EVENT], TOPIC)
    cloud = schema.render(event, CLOUD)
    assert (cloud["source"], cloud["type"], cloud["time"]) == (TOPIC, "T", "2026-11-21T03:00:00Z")
    (event,) = schema.parse(CLOUD_EVENT, TOPIC)
    assert schema.render(event, EVENT_GRID)["topic"] == TOPIC
    assert schema.render(event, EVENT_GRID)["eventType"] == "T"


def test_binary_data_has_no_data_beside_it() -> None:
    """A CloudEvent with data_base64 is delivered without a `data` key."""
    cloud = {"specversion": "1.0", "id": "1", "source": "/me", "type": "T", "data_base64": "AAEC"}
    (event,) = schema.parse([cloud], TOPIC)
    assert schema.render(event, CLOUD)["data_base64"] == "AAEC"
    assert "data" not in schema.render(event, CLOUD)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([1], "event 0 is not a JSON object"),
        ([EVENT_GRID_EVENT, {}], "event 1 has no 'id'"),
        ([{**EVENT_GRID_EVENT, "subject": 5}], "'subject' must be a string, not 5"),
        ([{"specversion": "1.0", "id": "1", "type": "T"}], "has no 'source'"),
        ([{**EVENT_GRID_EVENT, "topic": "/other"}], "has topic '/other'; leave it out"),
    ],
)
def test_what_is_no_event_is_named(body: Any, message: str) -> None:
    """The error names the event and the key."""
    with pytest.raises(BadEvents, match=message):
        schema.parse(body, TOPIC)
