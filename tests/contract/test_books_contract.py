"""The contract of shared.money.ports.Books, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.money_table import TableBooks
from shared.kernel.errors import Changed
from shared.money.model import Account, Day, Reserved, Row
from shared.money.ports import Books
from shared.money.prices import RETAIL, Price
from tests.fakes.ports import FakeBooks

NOW = datetime(2026, 1, 31, 23, 50, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "tables", "own_tables"])
def books(request: pytest.FixtureRequest) -> Books:
    if request.param == "fake":
        return FakeBooks()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableBooks(tables.table)


def test_an_account_is_written_under_its_etag(books: Books) -> None:
    """Of two writers that opened or read the same account, one succeeds; the other gets Changed, and nothing is
    lost."""
    assert books.account("vision") is None
    account = Account("vision", "202601", 1.5, {"run-a": Reserved(2.5, NOW, 0.5, NOW + timedelta(hours=1))}, NOW)
    books.open_account(account)
    with pytest.raises(Changed):
        books.open_account(account)
    first = books.account("vision")
    assert first is not None
    assert first.value == account
    after = replace(account, spent=2.0, warned_at=None, reached_at=NOW)
    books.write_account(first, after)
    with pytest.raises(Changed):
        books.write_account(first, account)
    second = books.account("vision")
    assert second is not None
    assert second.value == after


def test_a_closed_day_is_kept(books: Books) -> None:
    """A day is None until it is closed. Then it is the stored day, also if no cluster had a node."""
    rows = (Row("training", "run-a", "ann", "vision", 7200.5, 1.25), Row("unexplained", "", "", "", 60.0, None))
    day = Day("gpu-1", "20260131", rows, 3, 0.5, 7300.0)
    assert books.day("20260131") is None
    books.close_day("20260131", [day, Day("Ä", "20260131")])
    books.close_day("20260131", [day, Day("Ä", "20260131")])
    assert books.day("20260131") == [day, Day("Ä", "20260131")]
    books.close_day("20260131", [day])  # closed again, with the present figures
    assert books.day("20260131") == [day]
    books.close_day("20260201", [])
    assert books.day("20260201") == []


def test_a_newer_price_replaces_the_older_one(books: Books) -> None:
    """The last stored price of a size, tier and region is returned, and case does not matter."""
    assert books.prices() == []
    price = Price("Standard_D2s_v5", "low_priority", "eastus", 0.02, RETAIL, NOW, NOW)
    books.keep_prices([price, replace(price, tier="dedicated", dollars=0.1)])
    books.keep_prices([replace(price, vm_size="STANDARD_D2S_V5", dollars=0.03)])
    found = {p.tier: p.dollars for p in books.prices()}
    assert found == {"low_priority": 0.03, "dedicated": 0.1}
