"""The contract of shared.schedules.ports.Schedules, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.schedule_table import TableSchedules
from shared.kernel.errors import Changed
from shared.schedules.model import CatchUp, Firing, Outcome, Overlap, Schedule
from shared.schedules.ports import Schedules
from tests.fakes.ports import FakeSchedules

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
FULL = Schedule(
    "s-1", {"trainer": "mnist", "parameters": {"epochs": 2}}, NOW, NOW, "0 6 * * 1", "Europe/Berlin", "mnist", 0,
    CatchUp.ALL, Overlap.REPLACE, True, "ada", NOW, "run-1", 5, 2,
)  # fmt: skip
FIRING = Firing("s-1", 1767323045678, NOW, NOW, Outcome.STARTED, "run-1", "", {"files": 3})


@pytest.fixture(params=["fake", "tables", "own_tables"])
def schedules(request: pytest.FixtureRequest) -> Schedules:
    if request.param == "fake":
        return FakeSchedules()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableSchedules(tables.table)


def test_a_schedule_comes_back_until_it_is_removed(schedules: Schedules) -> None:
    """Every field survives, the second of two writers gets an error, and a removed schedule can't be written."""
    schedules.add(FULL)
    with pytest.raises(Changed):
        schedules.add(FULL)
    stored = schedules.get("s-1")
    assert stored is not None
    assert stored.value == FULL
    after = schedules.update(stored, last_run="run-2", next_at=None)
    assert schedules.get("s-1") == after
    with pytest.raises(Changed):
        schedules.update(stored, number=9)
    schedules.add(replace(FULL, id="s-0"))
    assert [each.id for each in schedules.all()] == ["s-0", "s-1"]
    assert (schedules.remove("s-1"), schedules.remove("s-1"), schedules.get("s-1")) == (True, False, None)
    with pytest.raises(Changed):
        schedules.update(after, number=9)


def test_an_instant_is_claimed_once(schedules: Schedules) -> None:
    """A second claim of a firing returns the first claim's record. `finish` overwrites the record; the newest
    firing comes first."""
    assert schedules.claim(FIRING) == FIRING
    assert schedules.claim(replace(FIRING, outcome=Outcome.SKIPPED, why="late")) == FIRING
    failed = replace(FIRING, outcome=Outcome.FAILED, run="", why="no data")
    schedules.finish(failed)
    schedules.claim(replace(FIRING, order=FIRING.order - 1))
    schedules.claim(replace(FIRING, schedule="s-2"))
    assert [each.order - FIRING.order for each in schedules.firings("s-1")] == [0, -1]
    assert schedules.firings("s-1", 1) == [failed]
