"""One table service and one table for all tests of the store. Each test has a run of its own.

ELASTIC_TABLES=azurite in the environment takes Microsoft's emulator instead of ours.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from emulators.storage import services
from emulators.testing import azurite
from tests.elastic.proxy import Proxy
from trainers.elastic.client import Table, connect


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite | services.Services]:
    # With the published key, as an Azurite that was started by hand.
    start = azurite.start if os.environ.get("ELASTIC_TABLES") == "azurite" else services.start
    with start(tmp_path_factory.mktemp("tables"), key=azurite.KEY) as running:
        yield running


@pytest.fixture(scope="session")
def table(account: services.Services) -> Iterator[Table]:
    with closing(connect(account.table_url, {}, "store")) as made:
        yield made


@pytest.fixture
def run() -> str:
    return f"run-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def proxy(account: services.Services) -> Iterator[Proxy]:
    port = urlsplit(account.table_url).port
    assert port is not None
    with Proxy(port) as running:
        yield running


@pytest.fixture
def shaky(proxy: Proxy) -> Iterator[Table]:
    """The same table as `table`, through the proxy."""
    with closing(connect(proxy.url, {}, "store")) as made:
        yield made
