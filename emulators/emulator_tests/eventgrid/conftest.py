"""One real Azurite for the whole folder, and real Event Grid parts that read it."""

from __future__ import annotations

import base64
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.queue import QueueServiceClient

from emulator_tests import azurites
from emulators import certs, process
from emulators.testing.azurite import Azurite

RESOURCE = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/devstoreaccount1"
CUSTOM = "/subscriptions/s/resourceGroups/r/providers/Microsoft.EventGrid/topics/team"
TOPIC_KEY = base64.b64encode(b"a key of the topic").decode()


@dataclass
class Grid:
    """A running Event Grid part, as a test sees it."""

    config: Path
    bundle: Path
    part: process.Part = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        argv = [sys.executable, "-m", "emulators.eventgrid", "--config", str(self.config)]
        self.part = process.start("eventgrid", argv, log=self.config.with_suffix(".log"))

    def kill(self) -> None:
        self.part.process.kill()
        self.part.stop()

    @property
    def url(self) -> str:
        return str(self.part.info["url"])

    def topic(self, name: str = "team") -> str:
        return f"{self.url}/topics/{name}/api/events"

    def get(self, path: str) -> requests.Response:
        return requests.get(self.url + path, verify=str(self.bundle), timeout=60)

    def faults(self, **knobs: Any) -> None:
        requests.post(f"{self.url}/control/faults", json=knobs, verify=str(self.bundle), timeout=60).raise_for_status()

    def counts(self) -> dict[str, Any]:
        return dict(self.get("/control/counts").json())

    def barrier(self, timeout: float = 60) -> dict[str, Any]:
        answer = self.get(f"/control/barrier?timeout={timeout}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def publish(self, *events: dict[str, Any], headers: dict[str, str] | None = None) -> requests.Response:
        headers = {"aeg-sas-key": TOPIC_KEY} if headers is None else headers
        return requests.post(self.topic(), json=list(events), headers=headers, verify=str(self.bundle), timeout=60)


@dataclass
class Store:
    """The storage account under test. Names are unique, so tests can share one Azurite."""

    azurite: Azurite
    blobs: BlobServiceClient
    queues: QueueServiceClient

    def container(self) -> ContainerClient:
        return self.blobs.create_container(f"c{uuid.uuid4().hex[:12]}")

    def queue(self) -> str:
        name = f"q{uuid.uuid4().hex[:12]}"
        self.queues.create_queue(name).close()
        return name

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """Remove every event from a queue, and return the events."""
        with self.queues.get_queue_client(queue) as client:
            texts = [
                message.content for page in client.receive_messages(messages_per_page=32).by_page() for message in page
            ]
        return [json.loads(base64.b64decode(text)) for text in texts]


@pytest.fixture(scope="session")
def azurite_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("azurite")


@pytest.fixture(scope="session")
def store(azurite_home: Path) -> Iterator[Store]:
    with (
        azurites.started(azurite_home) as running,
        BlobServiceClient.from_connection_string(running.connection_string) as blobs,
        QueueServiceClient.from_connection_string(running.connection_string) as queues,
    ):
        yield Store(running, blobs, queues)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> certs.Certs:
    return certs.ensure(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def new_grid(
    store: Store, certificates: certs.Certs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Grid]]:
    """Start a part: `new_grid([subscriptions], retry_time_scale=0.001)`. All parts stop at the end of the module."""
    grids: list[Grid] = []

    def start(subscriptions: list[dict[str, Any]], storage: Azurite = store.azurite, **options: Any) -> Grid:
        folder = tmp_path_factory.mktemp("grid")
        config = {
            "certs": str(certificates.server.parent),
            "state": str(folder / "state"),
            "storage": {
                "connection_string": storage.connection_string,
                "access_log": str(storage.access_log),
            },
            "topics": [
                {"name": "storage", "resource": RESOURCE, "source": "storage"},
                {"name": "team", "resource": CUSTOM, "key": TOPIC_KEY},
            ],
            "subscriptions": subscriptions,
            **options,
        }
        path = folder / "eventgrid.json"
        path.write_text(json.dumps(config))
        grids.append(Grid(path, certificates.bundle))
        return grids[-1]

    yield start
    for grid in grids:
        assert grid.part.stop() in (0, -9), grid.part.log.read_text()


@pytest.fixture(scope="session")
def to_queue() -> Callable[..., dict[str, Any]]:
    """Return a subscription that delivers to a queue: `to_queue("team", "queue", filter={...})`."""

    def subscription(topic: str, queue: str, **rest: Any) -> dict[str, Any]:
        destination = {"endpointType": "StorageQueue", "properties": {"queueName": queue}}
        return {"name": f"to-{queue}", "topic": topic, "destination": destination, **rest}

    return subscription


@pytest.fixture(scope="session")
def in_container() -> Callable[[str], dict[str, Any]]:
    """Return the filter for blobs of one container."""
    return lambda name: {"subjectBeginsWith": f"/blobServices/default/containers/{name}/"}


@pytest.fixture(scope="session")
def custom_event() -> Callable[..., dict[str, Any]]:
    """Return an event in the Event Grid schema for the custom topic."""

    def event(event_id: str = "1", **rest: Any) -> dict[str, Any]:
        return {
            "id": event_id,
            "subject": "runs/1",
            "eventType": "Team.RunArchived",
            "eventTime": "2026-11-21T03:00:00Z",
            "data": {"run": "r1"},
            "dataVersion": "1",
            **rest,
        }

    return event
