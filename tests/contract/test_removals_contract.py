"""The contract of shared.removals.ports.Removals, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.removal_table import TableRemovals
from shared.removals.model import Removal, RemovalKind
from shared.removals.ports import Removals
from tests.fakes.ports import FakeRemovals

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "tables", "own_tables"])
def removals(request: pytest.FixtureRequest) -> Removals:
    if request.param == "fake":
        return FakeRemovals()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableRemovals(tables.table)


def test_a_record_is_written_over_and_found(removals: Removals) -> None:
    """Two writes of the same thing and time are one record; the newest record comes first."""
    asked = Removal(RemovalKind.DROP, "mnist/a b", NOW, "ada", "Asked for.")
    removals.put(asked)
    done = replace(asked, files=3, bytes=5 * 2**40, done_at=NOW)
    removals.put(done)
    removals.put(replace(asked, what=RemovalKind.RUN, asked_at=NOW + timedelta(seconds=1)))
    assert removals.get(RemovalKind.DROP, "mnist/a b", NOW) == done
    assert removals.get(RemovalKind.RUN, "mnist/a b", NOW) is None
    assert [each.what for each in removals.newest()] == [RemovalKind.RUN, RemovalKind.DROP]
    assert len(removals.newest(1)) == 1
