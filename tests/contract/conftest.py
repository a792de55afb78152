"""Each port on each side: the fake of tests.fakes.py, and the adapter on Azurite, on our own emulated queues and
tables, or on a real local Azure ML."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from emulators import certs, process
from emulators.storage import services
from emulators.testing import azurite
from emulators.tokens import issue
from shared.adapters.azureml.jobs import AzureMLJobs
from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.account import clients as storage_clients
from shared.adapters.storage.blobs import StorageBlobs
from shared.adapters.tables.asset_table import TableAssets
from shared.kernel.settings import Settings, Storage
from tests.contract.sides import RealSide
from tests.contract.wire import LocalAzureML, azureml_config


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    with azurite.start(tmp_path_factory.mktemp("azurite")) as running:
        yield running


@pytest.fixture(scope="session")
def clients(account: azurite.Azurite) -> Iterator[StorageClients]:
    made = storage_clients(Storage(connection_string=account.connection_string))
    with closing(made.blob), closing(made.queue), closing(made.table):
        yield made


class _Identity(BaseHTTPRequestHandler):
    """Gives tokens as App Service does in Azure, where App Service stands between the app and Entra ID."""

    def do_GET(self) -> None:
        resource = parse_qs(urlsplit(self.path).query)["resource"][0]
        token = {"access_token": issue("k" * 40, "app", resource), "expires_on": str(int(time.time()) + 86400)}
        body = json.dumps({**token, "resource": resource, "token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def _by_token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StorageClients, dict[str, str]]]:
    made = certs.ensure(tmp_path_factory.mktemp("certs"))
    with (
        azurite.start(tmp_path_factory.mktemp("azurite"), tls=made.server) as running,
        ThreadingHTTPServer(("127.0.0.1", 0), _Identity) as identity,
    ):
        threading.Thread(target=identity.serve_forever, daemon=True).start()
        env = {"IDENTITY_ENDPOINT": f"http://127.0.0.1:{identity.server_port}", "IDENTITY_HEADER": "x"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(
                "IDENTITY_ENDPOINT", env["IDENTITY_ENDPOINT"]
            )  # the credential reads this address now and later
            patch.setenv("IDENTITY_HEADER", env["IDENTITY_HEADER"])
            found = storage_clients(Storage(running.blob_url, running.queue_url, running.table_url))
        with closing(found.blob), closing(found.queue), closing(found.table):
            yield found, {**env, "REQUESTS_CA_BUNDLE": str(made.bundle)}
        identity.shutdown()


@pytest.fixture
def token_clients(_by_token: tuple[StorageClients, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> StorageClients:
    """The clients as in Azure: they use the services' addresses, HTTPS, and tokens of the app's identity."""
    found, env = _by_token
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def token_tables(token_clients: StorageClients) -> StorageClients:
    """The token clients, without tables."""
    return without_tables(token_clients)


@pytest.fixture
def tables(clients: StorageClients) -> StorageClients:
    """The clients of an account without tables."""
    return without_tables(clients)


def without_tables(clients: StorageClients) -> StorageClients:
    for table in clients.table.list_tables():
        clients.table.delete_table(table.name)
    return clients


@pytest.fixture(scope="session")
def own_connection_string(account: azurite.Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same account, served by the emulators' own queues and tables."""
    with services.start(tmp_path_factory.mktemp("storage")) as running:
        yield running.connection_string.replace(running.blob_url, account.blob_url)


@pytest.fixture(scope="session")
def own_clients(own_connection_string: str) -> Iterator[StorageClients]:
    made = storage_clients(Storage(connection_string=own_connection_string))
    with closing(made.blob), closing(made.queue), closing(made.table):
        yield made


@pytest.fixture
def own_tables(own_clients: StorageClients) -> StorageClients:
    """The emulators' own account, without tables."""
    return without_tables(own_clients)


@pytest.fixture(scope="module")
def azureml(account: azurite.Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAzureML]:
    """A local Azure ML in this process's environment, one per module because the SDK keeps one cloud per process."""
    home = tmp_path_factory.mktemp("azureml")
    argv = [sys.executable, "-m", "emulators.azureml", "--config", str(azureml_config(home, account.connection_string))]
    part = process.start("azureml", argv, log=home / "azureml.log")
    before = dict(os.environ)
    os.environ.update(part.info["env"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of the SDK at its import
        importlib.import_module("azure.ai.ml")
    yield LocalAzureML(part, Settings.from_env({**os.environ, "AzureWebJobsStorage": "x"}).workspace)
    os.environ.clear()
    os.environ.update(before)
    part.stop()


@pytest.fixture
def unique() -> Callable[[], str]:
    """Names that no other test uses, valid for containers and queues."""
    return lambda: f"t{uuid.uuid4().hex[:16]}"


NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture
def at() -> Callable[[float], datetime]:
    """The time `seconds` after a fixed moment."""
    return lambda seconds: NOW + timedelta(seconds=seconds)


@pytest.fixture
def real(azureml: LocalAzureML, tables: StorageClients, tmp_path: Path) -> RealSide:
    files = StorageBlobs(tables.blob)
    files.write("drops", "a/1", b"data", "text/plain")
    return RealSide(AzureMLJobs(azureml.workspace, TableAssets(tables.table), files), tmp_path)
