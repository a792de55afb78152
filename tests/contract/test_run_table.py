"""The table of runs: the cost of a request, the result of a crash, and rows that are long, old or broken."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from azure.data.tables import TableServiceClient, UpdateMode

from emulators.testing.azurite import Azurite
from shared.adapters.storage.account import StorageClients
from shared.adapters.tables import keys
from shared.adapters.tables.run_table import TableRuns
from shared.adapters.tables.table import Table, create, delete
from shared.kernel.errors import BadInput
from shared.runs.model import Moment, RunState
from shared.runs.ports import RunFilter
from tests.contract.some_runs import HOUR, NOW, pages, run
from tests.contract.wire import Dying, Recording
from tests.fakes.parts import changed
from tests.fakes.ports import Crash


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_insert_that_dies_is_whole_or_nothing(account: Azurite, tables: StorageClients, at: int, sent: bool) -> None:
    """Wherever an insert crashes, the next one finds either the whole run or nothing."""
    connection, transport = account.connection_string, Dying(at, sent)
    with TableServiceClient.from_connection_string(connection, transport=transport) as service, suppress(Crash):
        TableRuns(service).insert(run())
    runs = TableRuns(tables.table)
    there = [r.name for r in runs.newest()]
    assert [stored.value.name for stored in runs.unsettled(HOUR, 9)] == there
    assert runs.hours() == [HOUR] * len(there)
    assert runs.insert(run()) == (not there)
    assert runs.get("mnist-0").value == run()


def test_newest_takes_one_request_in_a_table_of_any_size(account: Azurite, tables: StorageClients) -> None:
    """The first page of 3 takes one request among 10 runs and among 60."""
    transport = Recording()
    with TableServiceClient.from_connection_string(account.connection_string, transport=transport) as service:
        runs, made = TableRuns(service), 0
        for size in (10, 60):
            while made < size:
                runs.insert(run(f"mnist-{made}", made))
                made += 1
            transport.requests.clear()
            assert [r.name for r in runs.newest(3)] == [f"mnist-{i}" for i in (size - 1, size - 2, size - 3)]
            assert len(transport.requests) == 1


def test_a_page_costs_a_constant_number_of_requests(account: Azurite, tables: StorageClients) -> None:
    """A page takes one request among 4,000 runs, with one filter, several filters, or a condition."""
    transport = Recording()
    with TableServiceClient.from_connection_string(account.connection_string, transport=transport) as service:
        runs = TableRuns(service)
        for i in range(50):
            runs.insert(run(f"mnist-{i}", i, owner="ann", tags={"a": "b"}))
        filters = [RunFilter(), RunFilter(holds=lambda one: one.name.endswith("0"))]
        filters += [RunFilter(experiment="digits"), RunFilter(state="received"), RunFilter(cluster="cpu-cluster")]
        filters += [RunFilter(owner="ann"), RunFilter(tag="a=b"), RunFilter("digits", "received", owner="ann")]
        for wanted in filters:
            transport.requests.clear()
            assert len(runs.page(wanted, 5).runs) == 5
            assert len(transport.requests) == 1, wanted


@pytest.mark.parametrize("age", ["no index", "names alone"])
def test_runs_of_older_versions_are_found(tables: StorageClients, age: str) -> None:
    """A run whose index has no copies, or that has no index, is listed correctly, and its next step is written."""
    runs, table = TableRuns(tables.table), Table(tables.table, "runs")
    for i in range(7):
        runs.insert(run(f"mnist-{i}", i, owner="ann"))
        for row in [row for row in table.query("run", "i!", "j") if row["name"] == f"mnist-{i}"]:
            table.write(delete("run", str(row["RowKey"])))
            if age == "names alone":
                table.write(create({k: row[k] for k in ("PartitionKey", "RowKey", "name", "cluster", "time_key")}))
    if age == "names alone":
        assert [one.name for page in pages(runs, RunFilter(owner="ann"), 2) for one in page] == [
            f"mnist-{i}" for i in reversed(range(7))
        ]
    for i in range(7):
        runs.update(old := runs.get(f"mnist-{i}"), changed(old.value, state=RunState.RUNNING, attempts=2))
    for wanted in (RunFilter(owner="ann"), RunFilter(state="running"), RunFilter(owner="ann", state="running")):
        found = [one for page in pages(runs, wanted, 3) for one in page]
        assert [(one.name, one.progress.attempts) for one in found] == [(f"mnist-{i}", 2) for i in reversed(range(7))]


def test_a_service_that_gives_up_early_is_asked_again(
    account: Azurite, tables: StorageClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of one row each, as the service gives after seconds of search, end the page with the rows so far and
    a token."""
    runs = TableRuns(tables.table)
    for i in range(9):
        runs.insert(run(f"mnist-{i}", i))
    whole = Table.page
    monkeypatch.setattr(Table, "page", lambda self, ask, limit, token: whole(self, ask, 1, token))
    assert [len(page) for page in pages(runs, RunFilter(), 100)] == [1] * 9
    found = pages(runs, RunFilter(state="received"), 100)
    assert [len(page) for page in found] == [4, 4, 1]
    assert [r.name for page in found for r in page] == [f"mnist-{i}" for i in reversed(range(9))]


def test_a_row_that_can_not_be_read_stops_no_list(tables: StorageClients) -> None:
    """An unreadable run is listed as broken, with the column; the other runs are listed. `get` reports the same."""
    runs = TableRuns(tables.table)
    for i in range(3):
        runs.insert(run(f"mnist-{i}", i))
    table = tables.table.get_table_client("runs")
    key = f"t!{keys.newest_first(NOW + timedelta(seconds=1), 'mnist-1')}"
    for column, value in (("nodes", "many"), ("history", "[[["), ("state", "lost"), ("created_at", "")):
        table.update_entity({"PartitionKey": "run", "RowKey": key, column: value}, mode=UpdateMode.MERGE)
        found = runs.newest()
        assert [r.name for r in found] == ["mnist-2", "mnist-1", "mnist-0"]
        assert found[1].progress.state is RunState.BROKEN
        assert [r.progress.state for r in runs.page(RunFilter(), 9).runs].count(RunState.BROKEN) == 1
        assert [s.value.progress.state for s in runs.unsettled(HOUR, 9)].count(RunState.BROKEN) == 1
    assert "Column created_at can't be read" in found[1].progress.reason
    with pytest.raises(BadInput, match="created_at can't be read"):
        runs.get("mnist-1")


def test_a_long_history_is_kept(tables: StorageClients) -> None:
    """A history as long as many columns comes back whole."""
    runs = TableRuns(tables.table)
    moments = tuple(Moment(RunState.QUEUED, NOW + timedelta(seconds=i), f"{i} " + "w" * 900) for i in range(100))
    runs.insert(run(history=moments))
    assert runs.get("mnist-0").value.progress.history == moments
