"""One Azurite for this folder, and hosts of the sample app as real processes.

EMULATORS_FUNCTIONS_HOST is the command that starts another host than ours in the app's folder, such as `func start
--port {port}`. The tests then run against this host, except for tests of features that only our host has.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import QueueClient

from emulator_tests import azurites
from emulator_tests.places import asked_for
from emulators import process
from emulators.testing import azurite, other_host

OTHER_HOST = asked_for("FUNCTIONS_HOST")
OURS = {"invisibility_seconds", "lock_seconds", "drain_seconds", "require_keys", "keys", "backend"}
ours_alone = pytest.mark.skipif(bool(OTHER_HOST), reason="this is of our own host, not of EMULATORS_FUNCTIONS_HOST")
SAMPLE = Path(__file__).parent / "apps" / "sample"


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    with azurites.started(tmp_path_factory.mktemp("azurite")) as running:
        yield running


@dataclass
class SampleHost:
    """A host of the sample app. `queue` is the name of the queue function's queue, and the prefix of the other
    queues' names."""

    part: process.Part
    record: Path
    queue: str
    connection: str

    def call(self, path: str, method: str = "GET", **kwargs: Any) -> requests.Response:
        return requests.request(method, self.part.info["url"] + path, timeout=30, **kwargs)

    def records(self, kind: str) -> list[dict[str, Any]]:
        """Return the records that functions of one kind have written so far."""
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["kind"] == kind]

    def wait_for_records(self, kind: str, count: int = 1, text: str = "") -> list[dict[str, Any]]:
        """Wait for `count` records of one kind with `text` in the body, and return the records."""

        def found() -> list[dict[str, Any]]:
            return [entry for entry in self.records(kind) if text in entry.get("body", "")]

        process.wait_for(lambda: len(found()) >= count, 60, f"{count} records of {kind} {text}")
        return found()

    def client(self, suffix: str = "") -> QueueClient:
        return QueueClient.from_connection_string(self.connection, self.queue + suffix)

    def send(self, body: str, suffix: str = "") -> None:
        with self.client(suffix) as client:
            try:
                client.send_message(body)
            except ResourceNotFoundError:
                client.create_queue()
                client.send_message(body)

    def bodies(self, suffix: str) -> list[str]:
        """Return the messages of a queue without removing them; nothing for a missing queue."""
        with self.client(suffix) as client:
            try:
                return sorted(message.content for message in client.peek_messages(32))
            except ResourceNotFoundError:
                return []

    def count(self, suffix: str = "") -> int:
        """Return the number of messages in a queue, including hidden messages."""
        with self.client(suffix) as client:
            try:
                return client.get_queue_properties().approximate_message_count or 0
            except ResourceNotFoundError:
                return 0

    def log(self) -> str:
        return self.part.log.read_text()


StartHost = Callable[..., SampleHost]


def starter(storage: azurite.Azurite, folder: Path) -> Iterator[StartHost]:
    running: list[SampleHost] = []

    def start(
        settings: dict[str, str] | None = None,
        python: str = sys.executable,
        like: SampleHost | None = None,
        **config: Any,
    ) -> SampleHost:
        """Start a host. With `like` it uses another host's queue and record file. `settings` and `config` override
        the defaults."""
        number = len(running)
        queue = like.queue if like else f"q{uuid.uuid4().hex[:12]}"
        file, record = folder / f"host{number}.json", like.record if like else folder / f"record{number}.jsonl"
        if OTHER_HOST and config.keys() & OURS:
            pytest.skip(f"only our host has {', '.join(sorted(config.keys() & OURS))}")
        file.write_text(json.dumps({"app": str(SAMPLE), "host_id": queue, "lock_seconds": 15, **config}))
        env = {
            "AzureWebJobsStorage": storage.connection_string,
            "SAMPLE_RECORD": str(record),
            "SAMPLE_SCHEDULE": "0 0 4 1 1 *",
            "SAMPLE_QUEUE": queue,
            **(settings or {}),
        }
        if OTHER_HOST:
            app = shutil.copytree(config.get("app", SAMPLE), folder / f"app{number}")
            env["AzureFunctionsWebHost__hostid"] = config.get("host_id", queue)
            part = other_host.start(OTHER_HOST, app, folder / f"host{number}.log", env)
        else:
            argv = [python, "-m", "emulators.host", "--config", str(file)]
            part = process.start("host", argv, log=folder / f"host{number}.log", env={**os.environ, **env})
        running.append(SampleHost(part, record, queue, storage.connection_string))
        return running[-1]

    yield start
    for host in running:
        host.part.stop()


@pytest.fixture
def sample_copy(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Make a copy of the sample app with the test's own host.json."""

    def make(host_json: dict[str, Any]) -> Path:
        app = shutil.copytree(SAMPLE, tmp_path / "app")
        bundle = json.loads((app / "host.json").read_text())["extensionBundle"]
        (app / "host.json").write_text(json.dumps({"version": "2.0", "extensionBundle": bundle, **host_json}))
        return app

    return make


@pytest.fixture
def start_host(storage: azurite.Azurite, tmp_path: Path) -> Iterator[StartHost]:
    """Start hosts for one test."""
    yield from starter(storage, tmp_path)


@pytest.fixture(scope="session")
def sample_host(storage: azurite.Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleHost]:
    """One shared host without keys, because starting a host takes a second."""
    starts = starter(storage, tmp_path_factory.mktemp("host"))
    yield next(starts)()
    next(starts, None)


@pytest.fixture(scope="session")
def keyed_host(storage: azurite.Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleHost]:
    """One host with keys (m-key is the master's, f-key the functions', e-key Event Grid's), without a home page,
    and with a body limit of 1,000 bytes."""
    starts = starter(storage, tmp_path_factory.mktemp("keyed"))
    keys = {"master": "m-key", "function": "f-key", "eventgrid_extension": "e-key"}
    settings = {"AzureWebJobsDisableHomepage": "true", "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT": "1000"}
    yield next(starts)(settings, require_keys=True, keys=keys)
    next(starts, None)
