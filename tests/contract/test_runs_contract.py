"""What shared.ports.Runs promises, of the fake and of Azure Table Storage."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.data.tables import TableServiceClient

from emulators.storage.azurite import Azurite
from shared.adapters.storage import StorageClients
from shared.adapters.table import Table
from shared.adapters.tables import TableRuns
from shared.kernel.errors import Changed, Impossible, NotFound
from shared.runs.model import Elastic, Member, Moment, Run, RunState, Size
from shared.runs.ports import RunFilter, RunPage, Runs
from tests.contract.wire import Dying, Recording
from tests.fakes import Crash, FakeRuns

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "real"])
def runs(request: pytest.FixtureRequest) -> Runs:
    if request.param == "fake":
        return FakeRuns()
    tables: StorageClients = request.getfixturevalue("tables")
    return TableRuns(tables.table)


def run(name: str = "mnist-0", seconds: float = 0.0, **fields: Any) -> Run:
    created_at = NOW + timedelta(seconds=seconds)
    return Run(name, f"mnist/{name}", "mnist", "f" * 64, "digits", "cpu-cluster", 2, created_at, **fields)


def test_a_run_comes_back_as_it_was_written(runs: Runs) -> None:
    """Every field survives the way to the table and back."""
    full = run(
        request={"command": "träin", "inputs": {"data": {"path": "azureml://x"}}},
        state=RunState.FAILED,
        history=(Moment(RunState.RECEIVED, NOW), Moment(RunState.FAILED, NOW + timedelta(microseconds=1), "exit 1")),
        attempts=2,
        reason="exit code 1\nTraceback",
        job="mnist-0",
        code="c",
        environment="azureml:trainyard:1",
        output="output/digits/mnist-0",
        last_metrics={"test_accuracy": 0.985},
        best_metrics={"test_accuracy": 0.99, "nan": 1e300},
        archived_at=NOW,
        asked="d" * 64,
        retry_of="mnist-9",
        cancel_asked_at=NOW,
        elastic=Elastic(
            1,
            10,
            NOW + timedelta(hours=1),
            (Member(0, 2, RunState.RUNNING, NOW, "The node was preempted."), Member(1, 1, RunState.QUEUED, NOW)),
            (Size(NOW, 1), Size(NOW + timedelta(seconds=1), 2)),
        ),
    )
    assert runs.insert(full)
    assert runs.get("mnist-0").value == full


def test_a_name_is_inserted_once(runs: Runs) -> None:
    """A second insert of a name, even of another content or time, returns False and changes nothing."""
    assert runs.insert(run())
    before = runs.get("mnist-0")
    assert not runs.insert(run(seconds=5, reason="other"))
    assert runs.get("mnist-0") == before
    assert [r.name for r in runs.newest()] == ["mnist-0"]


def test_an_insert_of_a_settled_run_does_not_unsettle_it(runs: Runs) -> None:
    """A run is inserted once, also after it was settled."""
    runs.insert(run())
    runs.settle("mnist-0")
    assert not runs.insert(run())
    assert list(runs.unsettled()) == []


@pytest.mark.parametrize("name", ["nobody", "a/../b", "x#?%", "ü", "", "n" * 2000])
def test_an_unknown_run_is_named(runs: Runs, name: str) -> None:
    """`get` of a name that is no run's raises NotFound, whatever the text."""
    runs.insert(run())
    with pytest.raises(NotFound, match="no run"):
        runs.get(name)


def test_update_merges_only_its_fields(runs: Runs) -> None:
    """Two writers of different fields, one after the other, lose nothing of each other."""
    runs.insert(run(reason="first"))
    first = runs.get("mnist-0")
    second = runs.update(first, job="mnist-0", last_metrics={"loss": 1.0})
    third = runs.update(second, state=RunState.SUBMITTED, history=(Moment(RunState.SUBMITTED, NOW, "why"),))
    assert runs.get("mnist-0") == third
    assert third.value == replace(
        first.value,
        job="mnist-0",
        last_metrics={"loss": 1.0},
        state=RunState.SUBMITTED,
        history=(Moment(RunState.SUBMITTED, NOW, "why"),),
    )


def test_update_needs_the_latest_etag(runs: Runs) -> None:
    """Of two writers that read the same row the second raises Changed, and its fields are not written."""
    runs.insert(run())
    read = runs.get("mnist-0")
    runs.update(read, job="a")
    with pytest.raises(Changed):
        runs.update(read, code="b")
    assert (runs.get("mnist-0").value.job, runs.get("mnist-0").value.code) == ("a", "")


def test_update_refuses_unknown_fields(runs: Runs) -> None:
    """A name that is no field of Run raises TypeError."""
    runs.insert(run())
    with pytest.raises(TypeError):
        runs.update(runs.get("mnist-0"), colour="blue")


def test_newest_comes_first_and_pages_are_complete(runs: Runs) -> None:
    """`newest` and `before` walk through all runs once, newest first, however many were made in one millisecond."""
    seconds = [3, 1, 2, 2, 2, 0, 86400, 0.0004, 0.0006]
    for i, s in enumerate(seconds):
        runs.insert(run(f"mnist-{i}", s))
    names, page = [], runs.newest(2)
    while page:
        names += [r.name for r in page]
        page = runs.newest(2, before=page[-1])
    assert names == [r.name for r in runs.newest()]
    assert sorted(names) == [f"mnist-{i}" for i in range(len(seconds))]
    times = [runs.get(name).value.created_at.replace(microsecond=0) for name in names]
    assert times == sorted(times, reverse=True)


def test_a_name_that_begins_another_is_not_skipped(runs: Runs) -> None:
    """`before` goes on exactly after the run given, also when the next name begins with its name."""
    for name in ("mnist-a", "mnist-aa", "mnist-ab", "mnist-b"):
        runs.insert(run(name))
    assert [r.name for r in runs.newest(before=run("mnist-a"))] == ["mnist-aa", "mnist-ab", "mnist-b"]


def pages(runs: Runs, wanted: RunFilter, limit: int) -> list[list[Run]]:
    """All pages, by their tokens."""
    found, token = [], ""
    while True:
        page = runs.page(wanted, limit, token)
        assert len(page.runs) <= limit
        found.append(page.runs)
        if not (token := page.token):
            return found


def test_pages_hold_all_that_is_wanted_once(runs: Runs) -> None:
    """The pages of a filter hold exactly the runs with its values, newest first, without their requests."""
    for i in range(60):
        experiment, cluster = "ab"[i % 2], "xyz"[i % 3]
        made = run(f"mnist-{i:02}", i, state=RunState.FAILED if i < 30 else RunState.QUEUED, request={"command": "x"})
        runs.insert(replace(made, experiment=experiment, cluster=cluster))

    def names(limit: int, **wanted: Any) -> list[str]:
        return [r.name for page in pages(runs, RunFilter(**wanted), limit) for r in page]

    newest_first = [f"mnist-{i:02}" for i in reversed(range(60))]
    assert names(7) == names(1000) == newest_first
    assert names(4, experiment="a", state="failed", cluster="y") == [f"mnist-{i:02}" for i in (28, 22, 16, 10, 4)]
    assert names(9, since=NOW + timedelta(seconds=50)) == newest_first[:10]
    assert names(9, since=NOW.replace(year=1900)) == newest_first
    assert names(9, since=NOW.replace(year=9000)) == names(9, experiment="x' or 1 eq 1") == []
    assert all(r.request == {} and r.history == () for page in pages(runs, RunFilter(), 50) for r in page)


def test_a_page_after_new_runs_goes_on_where_it_ended(runs: Runs) -> None:
    """Runs that are made between two pages neither come twice nor push others out."""
    for i in range(6):
        runs.insert(run(f"mnist-{i}", i))
    first = runs.page(RunFilter(), 3)
    runs.insert(run("mnist-9", 9))
    second = runs.page(RunFilter(), 9, first.token)
    assert [r.name for r in first.runs + second.runs] == [f"mnist-{i}" for i in (5, 4, 3, 2, 1, 0)]


@pytest.mark.parametrize("token", ["x", "bm9uZQ", "eyJhIjogMX0"])
def test_what_is_no_token_is_refused(runs: Runs, token: str) -> None:
    """A token that came with no page raises Impossible."""
    runs.insert(run())
    with pytest.raises(Impossible, match="token"):
        runs.page(RunFilter(), 3, token)


def test_a_run_is_unsettled_until_it_is_settled(runs: Runs) -> None:
    """`unsettled` names every run from its insert on until `settle`, and settling twice is once."""
    assert list(runs.unsettled()) == []
    runs.settle("mnist-7")
    runs.insert(run("mnist-1"))
    runs.insert(run("mnist-2"))
    assert sorted(runs.unsettled()) == ["mnist-1", "mnist-2"]
    runs.settle("mnist-1")
    runs.settle("mnist-1")
    assert list(runs.unsettled()) == ["mnist-2"]
    assert runs.get("mnist-1").value.name == "mnist-1"


def test_an_empty_table_has_no_runs(runs: Runs) -> None:
    """Before the first insert there is nothing, and no error."""
    assert runs.newest() == []
    assert runs.page(RunFilter(), 9) == RunPage([], "")
    with pytest.raises(NotFound):
        runs.get("mnist-0")


def test_a_half_done_insert_is_completed() -> None:
    """Where a fake's insert died between its writes, the next one completes it at the first one's time."""
    runs = FakeRuns()
    runs.half_insert(run())
    assert list(runs.unsettled()) == ["mnist-0"]
    assert not runs.insert(run(seconds=5))
    assert runs.get("mnist-0").value.created_at == NOW


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_insert_that_dies_is_whole_or_nothing(account: Azurite, tables: StorageClients, at: int, sent: bool) -> None:
    """Wherever an insert dies, the next one finds all of the run or nothing of it."""
    connection, transport = account.connection_string, Dying(at, sent)
    with TableServiceClient.from_connection_string(connection, transport=transport) as service, suppress(Crash):
        TableRuns(service).insert(run())
    runs = TableRuns(tables.table)
    there = [r.name for r in runs.newest()]
    assert list(runs.unsettled()) == there
    assert runs.insert(run()) == (not there)
    assert runs.get("mnist-0").value == run()


def test_newest_takes_one_request_in_a_table_of_any_size(account: Azurite, tables: StorageClients) -> None:
    """The first page of 3 costs one request among 10 runs and among 60."""
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
    """A page is one request, and one of a filter that nothing passes never more than a handful."""
    transport = Recording()
    with TableServiceClient.from_connection_string(account.connection_string, transport=transport) as service:
        runs = TableRuns(service)
        for i in range(50):
            runs.insert(run(f"mnist-{i}", i))
        for wanted, most in ((RunFilter(), 1), (RunFilter(experiment="none"), 4), (RunFilter(state="received"), 4)):
            transport.requests.clear()
            runs.page(wanted, 5)
            assert len(transport.requests) <= most


def test_a_service_that_gives_up_early_costs_a_constant_number_too(
    account: Azurite, tables: StorageClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that hold one row each, as after seconds of search, end the page with what there is and a token."""
    runs = TableRuns(tables.table)
    for i in range(9):
        runs.insert(run(f"mnist-{i}", i))
    whole = Table.page
    monkeypatch.setattr(Table, "page", lambda self, ask, limit, token: whole(self, ask, 1, token))
    found = pages(runs, RunFilter(), 100)
    assert [len(page) for page in found] == [4, 4, 1]
    assert [r.name for page in found for r in page] == [f"mnist-{i}" for i in reversed(range(9))]


def test_a_long_history_keeps_its_beginning_and_its_end(tables: StorageClients) -> None:
    """A history too long for a column loses moments from its middle only."""
    runs = TableRuns(tables.table)
    moments = tuple(Moment(RunState.QUEUED, NOW + timedelta(seconds=i), f"{i} " + "w" * 500) for i in range(200))
    runs.insert(run(history=moments))
    kept = runs.get("mnist-0").value.history
    assert 40 < len(kept) < 80
    assert kept[0] == moments[0]
    assert kept[1:] == moments[-len(kept) + 1 :]
