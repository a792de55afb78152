"""Our services, and Azurite beside them for comparison.

Tests that use `side` also hold for Azurite. With EMULATORS_AZURITE=1 they run against Azurite, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.queue import QueueServiceClient

from emulator_tests import azurites
from emulator_tests.places import asked_for
from emulator_tests.storage.raw import CONTENT, Raw
from emulators.storage import services
from emulators.storage.keys import ACCOUNT, KEY
from emulators.testing import azurite

NAMES = ("azurite", "ours") if asked_for("AZURITE") else ("ours",)
PAGE = "http://page.test"  # the origin of a web page that both sides let in


@dataclass(frozen=True)
class Side:
    name: str
    connection_string: str
    queue_url: str
    table_url: str
    blob_url: str


@pytest.fixture(scope="session")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    with azurites.started(tmp_path_factory.mktemp("azurite"), key=azurite.KEY) as running:
        running.let_in(PAGE)
        yield Side("azurite", running.connection_string, running.queue_url, running.table_url, running.blob_url)


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    with services.start(tmp_path_factory.mktemp("ours"), published_key=True) as running:
        yield Side("ours", running.connection_string, running.queue_url, running.table_url, running.blob_url)


@pytest.fixture(scope="session")
def sides(theirs: Side, ours: Side) -> dict[str, Side]:
    return {"azurite": theirs, "ours": ours}


@pytest.fixture(params=NAMES)
def side(request: pytest.FixtureRequest) -> Side:
    found: Side = request.getfixturevalue("theirs" if request.param == "azurite" else "ours")
    return found


@pytest.fixture
def queues(side: Side) -> Iterator[QueueServiceClient]:
    with QueueServiceClient.from_connection_string(side.connection_string, retry_total=0) as service:
        yield service


@pytest.fixture
def tables(side: Side) -> Iterator[TableServiceClient]:
    with TableServiceClient.from_connection_string(side.connection_string, retry_total=0) as service:
        yield service


@pytest.fixture
def unique() -> Callable[[], str]:
    """Names that no other test uses, valid for queues and tables."""
    return lambda: f"t{uuid.uuid4().hex[:16]}"


@pytest.fixture
def blobs(side: Side) -> Iterator[BlobServiceClient]:
    """Microsoft's client for the service, without the client's retries."""
    key = AzureNamedKeyCredential(ACCOUNT, KEY)
    with BlobServiceClient(side.blob_url, key, retry_total=0) as service:
        yield service


@pytest.fixture
def container(blobs: BlobServiceClient, unique: Callable[[], str]) -> ContainerClient:
    return blobs.create_container(unique())


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.upload_blob("a", CONTENT, metadata={"one": "1"})


@pytest.fixture
def name(blob: BlobClient) -> str:
    return f"{blob.container_name}/{blob.blob_name}"


@pytest.fixture
def raw(side: Side) -> Raw:
    """The service for requests without Microsoft's client."""
    return Raw(side.blob_url)
