"""Members of elastic runs in Azure Table Storage."""

from __future__ import annotations

from datetime import timedelta

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.run_table import TableRuns
from shared.elastic.model import Elastic, Member, Size
from shared.runs.model import RunState
from shared.runs.ports import RunFilter
from tests.contract.some_runs import NOW, run
from tests.fakes.parts import changed


def test_members_come_back_as_they_were_written(tables: StorageClients) -> None:
    """A member's reason for waiting, and the run's sizes and deadline, survive the table."""
    runs = TableRuns(tables.table)
    members = (Member(0, 2, RunState.RUNNING, NOW, "The node was preempted."), Member(1, 1, RunState.QUEUED, NOW))
    sizes = (Size(NOW, 1), Size(NOW + timedelta(seconds=1), 2))
    full = run(kind="elastic").having(Elastic(1, 10, NOW + timedelta(hours=1), members, sizes))
    assert runs.insert(full)
    assert runs.get("mnist-0").value == full


def test_a_run_too_long_for_copies_is_found(tables: StorageClients) -> None:
    """The records of a hundred members don't fit fifteen times into one write, and the run is still found."""
    runs = TableRuns(tables.table)
    runs.insert(run(kind="elastic", tags={f"t{i}": "x" for i in range(15)}))
    members = tuple(Member(i, 3, RunState.FAILED, NOW, "w" * 900) for i in range(100))
    stored = runs.update(old := runs.get("mnist-0"), old.value.having(Elastic(1, 10, NOW, members)))
    runs.update(stored, changed(stored.value, reason="at last"))
    [found] = runs.page(RunFilter(tag="t7=x"), 9).runs
    assert found == runs.get("mnist-0").value


def test_long_lists_of_members_are_kept(tables: StorageClients) -> None:
    """A hundred members with long reasons fit into a run's record."""
    runs = TableRuns(tables.table)
    members = tuple(Member(i, 3, RunState.FAILED, NOW, "w" * 900) for i in range(100))
    full = run(kind="elastic").having(Elastic(1, 10, NOW, members))
    runs.insert(full)
    assert runs.get("mnist-0").value == full
    assert runs.newest()[0].feature(Elastic) == full.feature(Elastic)
