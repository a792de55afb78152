"""The contract of shared.events.ports.Events, tested on the fake and on Event Grid's client with a real local
topic."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Protocol

import pytest
import requests

from emulators import process
from emulators.testing.azurite import Azurite
from shared.adapters.outgoing.eventgrid import TopicEvents
from shared.adapters.storage.account import StorageClients
from shared.events.ports import Events
from shared.kernel.errors import Unavailable
from shared.kernel.settings import EventTopic
from tests.fakes.ports import FakeEvents

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
KEY = base64.b64encode(b"a key of the topic").decode()
RESOURCE = "/subscriptions/s/resourceGroups/r/providers/Microsoft.EventGrid/topics/trainyard"


class Wire(Protocol):
    """The port, and the events that a subscriber received."""

    @property
    def events(self) -> Events: ...

    def received(self) -> list[dict[str, Any]]: ...


@dataclass
class FakeWire:
    events: FakeEvents

    def received(self) -> list[dict[str, Any]]:
        return [
            {"id": e.event_id, "type": f"Trainyard.{e.kind}", "subject": e.subject, "data": e.data, "time": e.at}
            for e in self.events.published
        ]


@dataclass
class RealWire:
    events: TopicEvents
    clients: StorageClients
    queue: str
    barrier: Callable[[], None]

    def received(self) -> list[dict[str, Any]]:
        self.barrier()
        messages = self.clients.queue.get_queue_client(self.queue).receive_messages(max_messages=32)
        found = [json.loads(base64.b64decode(message.content)) for message in messages]
        return [{**event, "time": datetime.fromisoformat(event["time"])} for event in found]


@pytest.fixture(scope="module")
def grid(account: Azurite, clients: StorageClients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[process.Part]:
    """An Event Grid topic with one subscription into a storage queue."""
    clients.queue.create_queue("lifecycle")
    home = tmp_path_factory.mktemp("eventgrid")
    config = {
        "certs": str(home / "certs"),
        "state": str(home / "state"),
        "storage": {"connection_string": account.connection_string, "access_log": str(account.access_log)},
        "topics": [{"name": "trainyard", "resource": RESOURCE, "key": KEY}],
        "subscriptions": [
            {
                "name": "lifecycle",
                "topic": "trainyard",
                "eventDeliverySchema": "CloudEventSchemaV1_0",
                "destination": {"endpointType": "StorageQueue", "properties": {"queueName": "lifecycle"}},
            }
        ],
    }
    (home / "eventgrid.json").write_text(json.dumps(config))
    argv = [sys.executable, "-m", "emulators.eventgrid", "--config", str(home / "eventgrid.json")]
    part = process.start("eventgrid", argv, log=home / "eventgrid.log")
    part.info["bundle"] = str(home / "certs" / "bundle.pem")
    yield part
    part.stop()


@pytest.fixture
def real(grid: process.Part, clients: StorageClients, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealWire]:
    clients.queue.get_queue_client("lifecycle").clear_messages()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", grid.info["bundle"])

    def barrier() -> None:
        answer = requests.get(f"{grid.info['url']}/control/barrier?timeout=20", timeout=30)
        assert answer.status_code == 200

    with closing(TopicEvents(EventTopic(f"{grid.info['url']}/topics/trainyard/api/events", KEY))) as events:
        yield RealWire(events, clients, "lifecycle", barrier)


@pytest.fixture(params=["fake", "real"])
def wire(request: pytest.FixtureRequest) -> Wire:
    if request.param == "fake":
        return FakeWire(FakeEvents())
    real: RealWire = request.getfixturevalue("real")
    return real


def test_an_event_arrives_as_it_was_published(wire: Wire) -> None:
    """A subscriber receives kind, subject, data, id and time, whatever text they contain."""
    data = {"run": "mnist-0", "drop": "mnist/übung 数据 🚂", "nodes": 2}
    wire.events.publish("RunSubmitted", "runs/mnist-0", data, "mnist-0/submitted", AT)
    (event,) = wire.received()
    expected = {"id": "mnist-0/submitted", "type": "Trainyard.RunSubmitted", "subject": "runs/mnist-0", "data": data}
    assert expected.items() <= event.items()
    assert event["time"] == AT


def test_a_repeated_event_is_known_by_its_id(wire: Wire) -> None:
    """An event published again after a crash has the same id."""
    for _ in range(2):
        wire.events.publish("DropSealed", "drops/mnist/a", {}, "a/1", AT)
    assert {event["id"] for event in wire.received()} == {"a/1"}


def test_events_are_cloud_events(real: RealWire) -> None:
    """The app publishes CloudEvents 1.0 with the source /trainyard."""
    real.events.publish("DropSealed", "drops/mnist/a", {}, "a/2", AT)
    (event,) = real.received()
    assert event["specversion"] == "1.0"
    assert event["source"] == "/trainyard"


def test_a_topic_that_is_ill_is_tried_twice(caplog: pytest.LogCaptureFixture) -> None:
    """A topic's 503 raises Unavailable after a single retry, because the event is queued then."""
    tries = []

    class Ill(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            tries.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(503)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Ill) as topic, ThreadPoolExecutor(1) as thread:
        thread.submit(topic.serve_forever)
        events = TopicEvents(EventTopic(f"http://127.0.0.1:{topic.server_port}/api/events", KEY))
        try:
            with pytest.raises(Unavailable), closing(events):
                events.publish("DropSealed", "drops/mnist/a", {}, "a/4", AT)
        finally:
            topic.shutdown()
    assert len(tries) == 2
    assert "retry_total" not in tries[0].decode() + caplog.text


def test_a_topic_that_refuses_or_is_gone_is_unavailable(grid: process.Part, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong key or a missing topic raises Unavailable; the error names the event but not the key."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", grid.info["bundle"])
    for endpoint in (f"{grid.info['url']}/topics/trainyard/api/events", "https://127.0.0.1:9/api/events"):
        with closing(TopicEvents(EventTopic(endpoint, "c2VjcmV0"))) as events:
            with pytest.raises(Unavailable, match="DropSealed of drops/mnist/a") as caught:
                events.publish("DropSealed", "drops/mnist/a", {}, "a/3", AT)
            assert "c2VjcmV0" not in str(caught.value)
