"""One storage, one control plane and one MLClient for the whole folder, because the SDK caches its knowledge of a
cloud."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from emulator_tests.azureml.clouds import Cloud, configuration, launch
from emulator_tests.azureml.openapi import SPECS, azureml
from emulators.storage import services
from emulators.storage.services import Services


@dataclass
class Receiver:
    """An Event Grid topic for tests. It keeps the accepted events, and can be set to fail."""

    url: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    refused: int = 0
    wrong: str = "none"  # a run whose events are permanently refused, with all events in the same request

    def of(self, run: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["data"]["runId"] == run]


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with services.start(tmp_path_factory.mktemp("account")) as running:
        yield running


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = 400 if any(event["data"]["runId"] == state.wrong for event in events) else state.status
            if status == 200:
                state.events.extend(events)
            else:
                state.refused += 1
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/topics/azureml/api/events"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One certificate authority for all control planes of the folder."""
    return str(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="session")
def cloud(
    account: Services, receiver: Receiver, certs: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    home = tmp_path_factory.mktemp("azureml")
    config = configuration(home, account, certs=certs, events={"url": receiver.url}, record_bodies=True)
    running = Cloud(launch(config), config)
    yield running
    assert running.part.stop() == 0


@pytest.fixture
def own_cloud(account: Services, certs: str, tmp_path: Path) -> Iterator[Callable[..., Cloud]]:
    """Start control planes for one test, with changes to the configuration."""
    started: list[Cloud] = []

    def begin(**changes: Any) -> Cloud:
        config = configuration(tmp_path / f"azureml-{len(started)}", account, certs=certs, **changes)
        started.append(Cloud(launch(config), config))
        return started[-1]

    yield begin
    for running in started:
        running.part.stop()


@pytest.fixture(scope="session")
def ml(cloud: Cloud) -> Iterator[Any]:
    """The unmodified MLClient with an unmodified DefaultAzureCredential, as the app makes it."""
    before = dict(os.environ)
    os.environ.update(cloud.part.info["env"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml import MLClient
        from azure.identity import DefaultAzureCredential

        scope = [os.environ[key] for key in ("AML_SUBSCRIPTION_ID", "AML_RESOURCE_GROUP", "AML_WORKSPACE")]
        with DefaultAzureCredential() as credential:
            yield MLClient(credential, *scope, **json.loads(os.environ["AML_CLIENT_KWARGS"]))
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def storage(account: Services) -> Iterator[BlobServiceClient]:
    with BlobServiceClient.from_connection_string(account.connection_string) as client:
        yield client


@pytest.fixture
def contract(cloud: Cloud) -> Iterator[None]:
    """Check that the answers during the test match Microsoft's OpenAPI (skipped without the documents)."""
    before = len(cloud.call("GET", "/control/requests").json())
    yield
    if not SPECS.exists():
        return
    api = azureml()
    entries = cloud.call("GET", "/control/requests").json()[before:]
    # Run history and the addresses of running operations have no published contract.
    published = [e for e in entries if e["path"].startswith(cloud.workspace)]
    findings = [finding for entry in published for finding in api.check(entry)]
    assert sorted(set(findings)) == []
