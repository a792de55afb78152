"""Both sides of each service: Azurite, and ours. What a test promises holds for both unless it says otherwise."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueServiceClient

from emulators.storage import azurite, services

NAMES = ("azurite", "ours")


@dataclass(frozen=True)
class Side:
    name: str
    connection_string: str
    queue_url: str
    table_url: str


@pytest.fixture(scope="session")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Side]]:
    with (
        azurite.start(tmp_path_factory.mktemp("azurite"), key=azurite.KEY) as theirs,
        services.start(tmp_path_factory.mktemp("ours")) as ours,
    ):
        yield {
            "azurite": Side("azurite", theirs.connection_string, theirs.queue_url, theirs.table_url),
            "ours": Side("ours", ours.connection_string, ours.queue_url, ours.table_url),
        }


@pytest.fixture(params=NAMES)
def side(request: pytest.FixtureRequest, sides: dict[str, Side]) -> Side:
    return sides[request.param]


@pytest.fixture
def ours(sides: dict[str, Side]) -> Side:
    return sides["ours"]


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
