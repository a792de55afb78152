"""The contract of shared.clusters.ports.Leases, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.lease_table import TableLeases
from shared.clusters.lease_model import Lease, lease_id
from shared.clusters.ports import Leases
from shared.kernel.errors import Changed, NotFound
from tests.fakes.ports import FakeLeases

NOW = datetime(2026, 1, 31, 23, 50, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "tables", "own_tables"])
def leases(request: pytest.FixtureRequest) -> Leases:
    if request.param == "fake":
        return FakeLeases()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableLeases(tables.table)


def lease(minutes: float, what: str = "x") -> Lease:
    at = NOW + timedelta(minutes=minutes)
    return Lease(lease_id(at, what), "cpu-cluster", 2, "ada", "tuning", at, at + timedelta(hours=1))


def test_a_lease_is_added_once_and_changed_by_who_read_it(leases: Leases) -> None:
    """`insert` of a known id changes nothing, whether the lease is closed or not; `replace` needs the etag that was
    read."""
    made = lease(0)
    assert leases.insert(made)
    assert not leases.insert(replace(made, nodes=9))
    read = leases.get(made.id)
    assert read.value == made
    longer = leases.replace(replace(made, until=made.until + timedelta(hours=1)), read)
    with pytest.raises(Changed):
        leases.replace(made, read)
    assert leases.get(made.id).value == longer.value
    assert leases.open() == [longer.value]
    leases.close(made.id)
    leases.close(made.id)
    assert leases.open() == []
    assert not leases.insert(made)
    assert leases.get(made.id).value == longer.value


def test_a_lease_that_is_not_there_is_named(leases: Leases) -> None:
    """`get` raises NotFound with the id."""
    with pytest.raises(NotFound, match="20260131T235005-00000000"):
        leases.get("20260131T235005-00000000")


def test_leases_are_found_by_when_they_were_made(leases: Leases) -> None:
    """`made_between` returns the leases made in a period, open or closed, oldest first."""
    made = [lease(minutes) for minutes in (0, 30, 90)]
    for one in reversed(made):
        leases.insert(one)
    leases.close(made[1].id)
    assert list(leases.made_between(NOW, NOW + timedelta(minutes=60))) == made[:2]
    assert list(leases.made_between(NOW + timedelta(minutes=1), NOW + timedelta(days=1))) == made[1:]
