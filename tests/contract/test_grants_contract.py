"""The contract of shared.grants.ports.Grants, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.adapters.grants.stores import TableGrants
from shared.adapters.storage.account import StorageClients
from shared.grants.model import Grant, GrantDeed, GrantTerms, May, Reservation, Then
from shared.grants.ports import Grants
from shared.kernel.errors import Changed
from tests.fakes.grants import FakeGrants

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
FULL = Grant(
    "0123456789ab", "nightly search", NOW, "ann", "id-ann", "d1" * 32,
    GrantTerms(
        20.0, NOW, (May.READ, May.RUN_CODE), ("mnist",), ("trees",), ("cpu-cluster",), ("churn",), ("runs/a",), 200, 4,
        Then.CANCEL,
    ),
    1.5, 3, 50, {"run-1": Reservation(2.5, NOW, 0.5, 4, 20, NOW)}, NOW, (GrantDeed(NOW, "ann", "id-ann", "created"),),
)  # fmt: skip


@pytest.fixture(params=["fake", "tables", "own_tables"])
def grants(request: pytest.FixtureRequest) -> Grants:
    if request.param == "fake":
        return FakeGrants()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableGrants(tables.table)


def test_a_grant_comes_back_and_has_one_writer_at_a_time(grants: Grants) -> None:
    """Every field survives, the second of two writers gets an error, and a request may contain any text."""
    grants.add(FULL)
    with pytest.raises(Changed):
        grants.add(FULL)
    stored = grants.get(FULL.id)
    assert stored is not None
    assert stored.value == FULL
    many = {f"run-{number}": Reservation(2.5, NOW, 0.5) for number in range(250)}
    after = grants.replace(stored, replace(FULL, reserved=many, revoked_at=None))
    assert grants.get(FULL.id) == after
    with pytest.raises(Changed):
        grants.replace(stored, FULL)
    grants.add(replace(FULL, id="0" * 12, made_at=datetime(2027, 1, 1, tzinfo=UTC)))
    assert [each.id for each in grants.all()] == ["0" * 12, FULL.id]
    assert [grants.get(name) for name in ("nobody", "a/b#?\n'", "x" * 2000)] == [None, None, None]
