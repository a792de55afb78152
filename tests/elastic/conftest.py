"""One Azurite and one table for all tests of the store; every test has a run of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest

from emulators.storage import azurite
from tests.elastic.proxy import Proxy
from trainers.elastic.client import Table, connect


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    # With the published key, as an Azurite that was started by hand.
    home = tmp_path_factory.mktemp("azurite")
    with azurite.start(home, key=azurite.KEY) as running:
        yield running


@pytest.fixture(scope="session")
def table(account: azurite.Azurite) -> Iterator[Table]:
    with closing(connect(account.table_url, {}, "store")) as made:
        yield made


@pytest.fixture
def run() -> str:
    return f"run-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def proxy(account: azurite.Azurite) -> Iterator[Proxy]:
    with Proxy(account.ports.table) as running:
        yield running


@pytest.fixture
def shaky(proxy: Proxy) -> Iterator[Table]:
    """The same table as `table`, through the proxy."""
    with closing(connect(proxy.url, {}, "store")) as made:
        yield made
