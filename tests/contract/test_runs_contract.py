"""What shared.ports.Runs promises, of the fake and of Azure Table Storage."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.data.tables import TableServiceClient, UpdateMode

from emulators.storage.azurite import Azurite
from shared.adapters import keys
from shared.adapters import run_index as index
from shared.adapters.recent_rows import SECONDS, RecentRows
from shared.adapters.run_table import TableRuns
from shared.adapters.storage import StorageClients
from shared.adapters.table import Table, create, delete
from shared.kernel.errors import BadInput, Changed, Impossible, NotFound
from shared.runs.model import Elastic, Member, Moment, Run, RunState, Size
from shared.runs.ports import RunFilter, RunPage, Runs
from tests.contract.wire import Dying, Recording
from tests.fakes import Crash, FakeRuns

HOUR = "20260102T03"
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["fake", "tables", "own_tables", "token_tables"])
def runs(request: pytest.FixtureRequest) -> Runs:
    if request.param == "fake":
        return FakeRuns()
    tables: StorageClients = request.getfixturevalue(request.param)
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


def test_a_second_insert_does_not_bring_an_hour_back(runs: Runs) -> None:
    """A run is inserted once; the hour that was taken off stays so."""
    runs.insert(run())
    assert runs.claim_hour(HOUR, NOW, 20)
    assert runs.drop_hour(HOUR)
    assert not runs.insert(run())
    assert runs.hours() == []


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


def test_what_changed_since_a_page_is_told(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """New runs and those written again come, older ones than the page's do not, those that fit no longer are gone."""
    monkeypatch.setattr("shared.adapters.run_table._OVERLAP", timedelta(milliseconds=-1))
    for i in range(5):
        runs.insert(run(f"mnist-{i}", i, state=RunState.QUEUED))
    queued = RunFilter(state="queued")
    page = runs.page(RunFilter(), 3, brief=True)
    assert [r.name for r in page.runs] == ["mnist-4", "mnist-3", "mnist-2"]
    quiet = runs.changed(queued, page.mark)
    assert quiet is not None
    assert (quiet.runs, quiet.gone) == ([], [])
    runs.update(runs.get("mnist-0"), reason="too old to be told")
    runs.update(runs.get("mnist-3"), state=RunState.RUNNING)
    runs.update(runs.get("mnist-2"), reason="told")
    runs.insert(run("mnist-9", 9, state=RunState.QUEUED))
    news = runs.changed(queued, quiet.mark)
    assert news is not None
    assert ([r.name for r in news.runs], news.gone) == (["mnist-9", "mnist-2"], ["mnist-3"])
    again = runs.changed(queued, news.mark)
    assert again is not None
    assert (again.runs, again.gone, again.mark) == ([], [], news.mark)


@pytest.mark.parametrize("token", ["x", "bm9uZQ", "eyJhIjogMX0", "WyJuIWEiLCAiMjAyNi0wMS0wMVQwMDowMDowMCswMDowMCJd"])
def test_what_is_no_token_is_refused(runs: Runs, token: str) -> None:
    """A token that came with no page raises Impossible."""
    runs.insert(run())
    with pytest.raises(Impossible, match="token"):
        runs.page(RunFilter(), 3, token)
    with pytest.raises(Impossible, match="came with a page"):
        runs.changed(RunFilter(), token)


def test_the_unsettled_runs_of_an_hour(runs: Runs) -> None:
    """`unsettled` gives an hour's runs that are not archived, newest first, page by page, with etags that count."""
    for name, seconds in (("mnist-1", 0), ("mnist-2", 1), ("mnist-3", 2), ("mnist-4", 3600), ("mnist-5", -3600)):
        runs.insert(run(name, seconds))
    runs.update(runs.get("mnist-2"), archived_at=NOW)
    assert runs.hours() == ["20260102T02", HOUR, "20260102T04"]
    first = runs.unsettled(HOUR, 1)
    rest = runs.unsettled(HOUR, 9, first[0].value)
    assert [stored.value.name for stored in (*first, *rest)] == ["mnist-3", "mnist-1"]
    assert first[0].value.request == {}
    runs.update(first[0], reason="with the etag of the list")
    with pytest.raises(Changed):
        runs.update(first[0], reason="again")


def test_an_hour_is_claimed_by_one_and_dropped_unless_a_run_came(runs: Runs) -> None:
    """Of two looks at once one gets the hour; and an hour to which a run was added since is not taken off."""
    assert not runs.claim_hour(HOUR, NOW, 20)
    runs.insert(run())
    assert runs.claim_hour(HOUR, NOW, 20)
    assert not runs.claim_hour(HOUR, NOW + timedelta(seconds=10), 20)
    assert runs.claim_hour(HOUR, NOW + timedelta(seconds=30), 20)
    runs.insert(run("mnist-1"))
    assert not runs.drop_hour(HOUR)
    assert runs.claim_hour(HOUR, NOW + timedelta(seconds=60), 20)
    assert runs.drop_hour(HOUR)
    assert runs.hours() == []


def test_runs_are_found_by_owner_tag_and_state(runs: Runs) -> None:
    """Every field of a filter narrows the list, alone and together; a run moves with its state."""
    runs.insert(run("mnist-1", 1, owner="ann", tags={"a": "x y", "b": "1"}))
    runs.insert(run("mnist-2", 2, owner="ann", owner_id="0a1b"))
    runs.insert(run("mnist-3", 3, owner="bob", tags={"a": "x y"}))
    runs.update(runs.get("mnist-2"), state=RunState.SUBMITTED)

    def names(**wanted: Any) -> list[str]:
        return [r.name for page in pages(runs, RunFilter(**wanted), 2) for r in page]

    assert names(owner="ann") == ["mnist-2", "mnist-1"]
    assert names(owner="0a1b") == ["mnist-2"]
    assert names(tag="a=x y") == ["mnist-3", "mnist-1"]
    assert names(tag="a=x y", owner="ann") == ["mnist-1"]
    assert (names(state="submitted"), names(state="received")) == (["mnist-2"], ["mnist-3", "mnist-1"])
    assert names(state="submitted", owner="bob") == []
    assert list(runs.in_state(RunState.SUBMITTED)) == [("mnist-2", "cpu-cluster")]


def test_the_rows_that_find_a_run_follow_it(runs: Runs) -> None:
    """Whatever is written of a run is shown by every filter, and values that it has no more find it no more."""
    runs.insert(run("mnist-1", owner="ann", tags={"a": "1"}))
    stored = runs.update(runs.get("mnist-1"), best_metrics={"accuracy": 0.5}, cluster="gpu-cluster")
    runs.update(stored, tags={"b": "2"}, reason="w" * 3000)
    for wanted in (RunFilter(), RunFilter(owner="ann"), RunFilter(cluster="gpu-cluster"), RunFilter(tag="b=2")):
        assert runs.page(wanted, 9).runs == [runs.get("mnist-1").value]
    assert not runs.page(RunFilter(cluster="cpu-cluster"), 9).runs + runs.page(RunFilter(tag="a=1"), 9).runs


def test_a_condition_finds_runs_over_all_pages(runs: Runs) -> None:
    """What a condition wants is found whatever lies between, in pages of the wanted length, each run once."""
    for i in range(30):
        runs.insert(run(f"mnist-{i}", i, best_metrics={"accuracy": i / 30}, owner="ann" if i % 2 else "bob"))
    seventh = RunFilter(holds=lambda one: one.best_metrics["accuracy"] * 30 % 7 < 0.5)
    third = RunFilter(owner="ann", state="received", holds=lambda one: one.created_at.second % 3 == 0)
    for wanted in (seventh, third):
        having = [one.name for one in runs.newest() if index.fits(one, wanted)]
        assert len(having) >= 4
        found = pages(runs, wanted, 2)
        assert [one.name for page in found for one in page] == having
        assert max(map(len, found)) == 2


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
    assert runs.hours() == [HOUR]
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
    assert [stored.value.name for stored in runs.unsettled(HOUR, 9)] == there
    assert runs.hours() == [HOUR] * len(there)
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
    """A page is one request, also of a filter by any field, of several, and of a condition among 4,000 runs."""
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
    """A run whose index has no copies, or none at all, is listed as it is, and its next step is written."""
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
        runs.update(runs.get(f"mnist-{i}"), state=RunState.RUNNING, attempts=2)
    for wanted in (RunFilter(owner="ann"), RunFilter(state="running"), RunFilter(owner="ann", state="running")):
        found = [one for page in pages(runs, wanted, 3) for one in page]
        assert [(one.name, one.attempts) for one in found] == [(f"mnist-{i}", 2) for i in reversed(range(7))]


def test_a_run_too_long_for_copies_is_found(tables: StorageClients) -> None:
    """What a hundred members say does not fit fifteen times into one write; it is found all the same."""
    runs = TableRuns(tables.table)
    runs.insert(run(tags={f"t{i}": "x" for i in range(15)}))
    members = tuple(Member(i, 3, RunState.FAILED, NOW, "w" * 900) for i in range(100))
    stored = runs.update(runs.get("mnist-0"), elastic=Elastic(1, 10, NOW, members))
    runs.update(stored, reason="at last")
    [found] = runs.page(RunFilter(tag="t7=x"), 9).runs
    assert found == runs.get("mnist-0").value


def test_a_service_that_gives_up_early_is_asked_again(
    account: Azurite, tables: StorageClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that hold one row each, as after seconds of search, end the page with what there is and a token."""
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
    """It is shown as broken, with the column; the others go on. `get` of it says the same."""
    runs = TableRuns(tables.table)
    for i in range(3):
        runs.insert(run(f"mnist-{i}", i))
    table = tables.table.get_table_client("runs")
    key = f"t!{keys.newest_first(NOW + timedelta(seconds=1), 'mnist-1')}"
    for column, value in (("nodes", "many"), ("history", "[[["), ("state", "lost"), ("created_at", "")):
        table.update_entity({"PartitionKey": "run", "RowKey": key, column: value}, mode=UpdateMode.MERGE)
        found = runs.newest()
        assert [r.name for r in found] == ["mnist-2", "mnist-1", "mnist-0"]
        assert found[1].state is RunState.BROKEN
        assert [r.state for r in runs.page(RunFilter(), 9).runs].count(RunState.BROKEN) == 1
        assert [s.value.state for s in runs.unsettled(HOUR, 9)].count(RunState.BROKEN) == 1
    assert "Column nodes can't be read" in found[1].reason
    with pytest.raises(BadInput, match="nodes can't be read"):
        runs.get("mnist-1")


def test_long_lists_of_members_are_kept(tables: StorageClients) -> None:
    """A hundred members with long reasons fit into a run's record."""
    runs = TableRuns(tables.table)
    members = tuple(Member(i, 3, RunState.FAILED, NOW, "w" * 900) for i in range(100))
    full = run(elastic=Elastic(1, 10, NOW, members))
    runs.insert(full)
    assert runs.get("mnist-0").value == full
    assert runs.newest()[0].elastic == full.elastic


def test_a_long_history_is_kept(tables: StorageClients) -> None:
    """A history of many columns' length comes back whole."""
    runs = TableRuns(tables.table)
    moments = tuple(Moment(RunState.QUEUED, NOW + timedelta(seconds=i), f"{i} " + "w" * 900) for i in range(100))
    runs.insert(run(history=moments))
    assert runs.get("mnist-0").value.history == moments


def test_runs_are_found_by_the_beginning_of_their_names(runs: Runs) -> None:
    """The names that begin with a text come in order, as many as asked for; a text that no name has gives none."""
    for name in ("mnist-10", "mnist-11", "mnist-2", "cifar-1"):
        runs.insert(run(name))
    assert runs.beginning_with("mnist-1", 9) == ["mnist-10", "mnist-11"]
    assert runs.beginning_with("mnist-", 2) == ["mnist-10", "mnist-11"]
    assert runs.beginning_with("mnist-10", 9) == ["mnist-10"]
    assert runs.beginning_with("zoo", 9) == []


def test_the_run_of_a_moment_ago_may_be_written_under_its_etag(runs: Runs) -> None:
    """`recent` gives what was inserted, read or written here, whole; a write under its etag succeeds like any other."""
    made = run(request={"command": "x"}, timeout_seconds=60)
    runs.insert(made)
    first = runs.recent("mnist-0")
    assert (first.value, first.etag) == (made, runs.get("mnist-0").etag)
    second = runs.update(first, state=RunState.SUBMITTED, attempts=1, archive_tries=2)
    again = runs.recent("mnist-0")
    assert (again.value, again.etag) == (runs.get("mnist-0").value, second.etag)
    assert runs.update(again, job="mnist-0").value.archive_tries == 2
    with pytest.raises(NotFound, match="mnist-9"):
        runs.recent("mnist-9")


def test_who_remembers_an_older_row_finds_out_by_writing(tables: StorageClients) -> None:
    """What another process wrote meanwhile makes an update under the remembered etag Changed, and `get` tells it."""
    here, there = TableRuns(tables.table), TableRuns(tables.table)
    here.insert(run())
    there.update(there.get("mnist-0"), job="mnist-0")
    with pytest.raises(Changed):
        here.update(here.recent("mnist-0"), state=RunState.SUBMITTED)
    assert here.get("mnist-0").value.job == here.recent("mnist-0").value.job == "mnist-0"


def test_a_row_is_remembered_for_seconds() -> None:
    """What is older is forgotten, and so is a row that a write found to be another one."""
    now = [0.0]
    rows = RecentRows(lambda: now[0])
    rows.keep("a", {"tries": (3, "Edm.Int64")}, "1")
    rows.merge("a", "1", {"why": "x"}, "2")
    assert rows.get("a") == ({"tries": 3, "why": "x"}, "2")
    rows.merge("a", "1", {"why": "y"}, "3")
    assert rows.get("a") is None
    rows.keep("a", {}, "4")
    now[0] = SECONDS + 1
    assert rows.get("a") is None
