"""The contract of shared.runs.ports.Runs, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables import run_index as index
from shared.adapters.tables.recent_rows import SECONDS, RecentRows
from shared.adapters.tables.run_table import TableRuns
from shared.jobs.location import Location
from shared.jobs.readers.expressions import read_command
from shared.jobs.spec import DataInput, JobSpec
from shared.kernel.errors import Changed, Impossible, NotFound
from shared.kernel.parts import columns, flat
from shared.runs.model import LIVE, Cost, Moment, Placed, Run, RunState
from shared.runs.ports import RunFields, RunFilter, RunPage, Runs, read_columns
from tests.contract.some_runs import HOUR, NOW, pages, run
from tests.fakes.parts import changed
from tests.fakes.ports import FakeRuns


@pytest.fixture(params=["fake", "tables", "own_tables", "token_tables"])
def runs(request: pytest.FixtureRequest) -> Runs:
    if request.param == "fake":
        return FakeRuns()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableRuns(tables.table)


def test_a_run_comes_back_as_it_was_written(runs: Runs) -> None:
    """Every field survives the round trip through the table."""
    full = run(
        request=JobSpec(command=read_command("träin"), inputs={"data": DataInput(Location("drops", "mnist/a/"))}),
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
    )
    assert runs.insert(full)
    assert runs.get("mnist-0").value == full


def test_a_new_row_has_no_column_at_its_default(own_tables: StorageClients) -> None:
    """Empty columns are left out, because every cell costs reading time, except those that queries need."""
    TableRuns(own_tables.table).insert(new := run())
    rows = own_tables.table.get_table_client("runs").query_entities("RowKey ge 't!' and RowKey lt 't~'")
    (cells,) = (dict(row) for row in rows)
    empty = {name for name, each in columns(Run).items() if each.of(new) == each.default}
    assert len(empty) > 50
    assert cells.keys() & empty == {"archived_at"}


def test_a_name_is_inserted_once(runs: Runs) -> None:
    """A second insert of a name, even with another content or time, returns False and changes nothing."""
    assert runs.insert(run())
    before = runs.get("mnist-0")
    assert not runs.insert(run(seconds=5, reason="other"))
    assert runs.get("mnist-0") == before
    assert [r.name for r in runs.newest()] == ["mnist-0"]


def test_a_second_insert_does_not_bring_an_hour_back(runs: Runs) -> None:
    """A second insert of a run does not restore an hour that was removed from the list of hours."""
    runs.insert(run())
    assert runs.claim_hour(HOUR, NOW, 20)
    assert runs.drop_hour(HOUR)
    assert not runs.insert(run())
    assert runs.hours() == []


@pytest.mark.parametrize("name", ["nobody", "a/../b", "x#?%", "ü", "", "n" * 2000])
def test_an_unknown_run_is_named(runs: Runs, name: str) -> None:
    """`get` of an unknown name raises NotFound, whatever text the name is."""
    runs.insert(run())
    with pytest.raises(NotFound, match="no run"):
        runs.get(name)


def test_update_merges_only_its_fields(runs: Runs) -> None:
    """Two writers of different fields, one after the other, lose nothing of each other."""
    runs.insert(run(reason="first"))
    first = runs.get("mnist-0")
    second = runs.update(first, changed(first.value, job="mnist-0", last_metrics={"loss": 1.0}))
    third = runs.update(
        second, changed(second.value, state=RunState.SUBMITTED, history=(Moment(RunState.SUBMITTED, NOW, "why"),))
    )
    assert runs.get("mnist-0") == third
    assert third.value == changed(
        first.value,
        job="mnist-0",
        last_metrics={"loss": 1.0},
        state=RunState.SUBMITTED,
        history=(Moment(RunState.SUBMITTED, NOW, "why"),),
    )


def test_update_needs_the_latest_etag(runs: Runs) -> None:
    """Of two writers that read the same row, the second raises Changed, and its fields are not written."""
    runs.insert(run())
    read = runs.get("mnist-0")
    runs.update(read, changed(read.value, job="a"))
    with pytest.raises(Changed):
        runs.update(read, changed(read.value, code="b"))
    assert (runs.get("mnist-0").value.jobs.job, runs.get("mnist-0").value.jobs.code) == ("a", "")


def test_update_refuses_unknown_fields(runs: Runs) -> None:
    """An update of a field that Run lacks raises TypeError."""
    runs.insert(run())
    with pytest.raises(TypeError):
        runs.update(old := runs.get("mnist-0"), changed(old.value, colour="blue"))


def test_newest_comes_first_and_pages_are_complete(runs: Runs) -> None:
    """`newest` and `before` visit every run once, newest first, even if many were created in one millisecond."""
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
    """`before` continues exactly after the given run, also if the next run's name begins with that run's name."""
    for name in ("mnist-a", "mnist-aa", "mnist-ab", "mnist-b"):
        runs.insert(run(name))
    assert [r.name for r in runs.newest(before=run("mnist-a"))] == ["mnist-aa", "mnist-ab", "mnist-b"]


def test_pages_hold_all_that_is_wanted_once(runs: Runs) -> None:
    """The pages of a filter hold exactly the matching runs, newest first, without their requests."""
    for i in range(60):
        experiment, cluster = "ab"[i % 2], "xyz"[i % 3]
        state = RunState.FAILED if i < 30 else RunState.QUEUED
        made = run(f"mnist-{i:02}", i, state=state, request=JobSpec(command=read_command("x")))
        runs.insert(changed(made, experiment=experiment, cluster=cluster))

    def names(limit: int, **wanted: Any) -> list[str]:
        return [r.name for page in pages(runs, RunFilter(**wanted), limit) for r in page]

    newest_first = [f"mnist-{i:02}" for i in reversed(range(60))]
    assert names(7) == names(1000) == newest_first
    assert names(4, experiment="a", state="failed", cluster="y") == [f"mnist-{i:02}" for i in (28, 22, 16, 10, 4)]
    assert names(9, since=NOW + timedelta(seconds=50)) == newest_first[:10]
    assert names(9, since=NOW.replace(year=1900)) == newest_first
    assert names(9, since=NOW.replace(year=9000)) == names(9, experiment="x' or 1 eq 1") == []
    assert all(
        r.asked.request == JobSpec() and r.progress.history == () for page in pages(runs, RunFilter(), 50) for r in page
    )


def test_a_page_after_new_runs_goes_on_where_it_ended(runs: Runs) -> None:
    """Runs created between two pages are not repeated and push no other run out."""
    for i in range(6):
        runs.insert(run(f"mnist-{i}", i))
    first = runs.page(RunFilter(), 3)
    runs.insert(run("mnist-9", 9))
    second = runs.page(RunFilter(), 9, first.token)
    assert [r.name for r in first.runs + second.runs] == [f"mnist-{i}" for i in (5, 4, 3, 2, 1, 0)]


@pytest.mark.parametrize("fields", RunFields)
@pytest.mark.parametrize("run_filter", [RunFilter(), RunFilter(state="running"), RunFilter(tag="team=blue")])
def test_a_page_has_the_fields_that_the_caller_needs(runs: Runs, fields: RunFields, run_filter: RunFilter) -> None:
    """A run's field has its stored value if the page reads its column, and its default otherwise."""
    cost = Cost(1.0, 0.5, 0.25, 60.0, NOW)
    written = changed(
        run(parameters={"epochs": 3}, project="vision", kind="new"),
        state=RunState.RUNNING,
        job="mnist-a",
        price=2.5,
        cost=cost,
        places=(Placed(NOW, "gpu"),),
        owner="ada",
        tags={"team": "blue"},
        reason="It is long.",
        best_metrics={"loss": 0.1},
    )
    runs.insert(written)
    (found,) = runs.page(run_filter, 3, fields=fields).runs
    values = {name: each.of(written) for name, each in columns(Run).items() if name in read_columns(fields)}
    assert flat(found) == {**flat(Run.of(**values)), "request": JobSpec()}


def test_what_changed_since_a_page_is_told(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes since a page include new and rewritten runs, exclude runs older than the page, and report runs that
    no longer match."""
    monkeypatch.setattr("shared.adapters.tables.run_table._OVERLAP", timedelta(milliseconds=-1))
    for i in range(5):
        runs.insert(run(f"mnist-{i}", i, state=RunState.QUEUED))
    queued = RunFilter(state="queued")
    page = runs.page(RunFilter(), 3, fields=RunFields.ROW)
    assert [r.name for r in page.runs] == ["mnist-4", "mnist-3", "mnist-2"]
    quiet = runs.changed(queued, page.mark)
    assert quiet is not None
    assert (quiet.runs, quiet.gone) == ([], [])
    runs.update(old := runs.get("mnist-0"), changed(old.value, reason="too old to be told"))
    runs.update(old := runs.get("mnist-3"), changed(old.value, state=RunState.RUNNING))
    runs.update(old := runs.get("mnist-2"), changed(old.value, reason="told"))
    runs.insert(run("mnist-9", 9, state=RunState.QUEUED))
    news = runs.changed(queued, quiet.mark)
    assert news is not None
    assert ([r.name for r in news.runs], news.gone) == (["mnist-9", "mnist-2"], ["mnist-3"])
    again = runs.changed(queued, news.mark)
    assert again is not None
    assert (again.runs, again.gone, again.mark) == ([], [], news.mark)


@pytest.mark.parametrize("token", ["x", "bm9uZQ", "eyJhIjogMX0", "WyJuIWEiLCAiMjAyNi0wMS0wMVQwMDowMDowMCswMDowMCJd"])
def test_what_is_no_token_is_refused(runs: Runs, token: str) -> None:
    """A token that no page returned raises Impossible."""
    runs.insert(run())
    with pytest.raises(Impossible, match="token"):
        runs.page(RunFilter(), 3, token)
    with pytest.raises(Impossible, match="came with a page"):
        runs.changed(RunFilter(), token)


def test_the_unsettled_runs_of_an_hour(runs: Runs) -> None:
    """`unsettled` returns an hour's runs that are not archived, newest first, page by page, with valid etags."""
    for name, seconds in (("mnist-1", 0), ("mnist-2", 1), ("mnist-3", 2), ("mnist-4", 3600), ("mnist-5", -3600)):
        runs.insert(run(name, seconds))
    runs.update(old := runs.get("mnist-2"), changed(old.value, archived_at=NOW))
    assert runs.hours() == ["20260102T02", HOUR, "20260102T04"]
    first = runs.unsettled(HOUR, 1)
    rest = runs.unsettled(HOUR, 9, first[0].value)
    assert [stored.value.name for stored in (*first, *rest)] == ["mnist-3", "mnist-1"]
    assert first[0].value.asked.request == JobSpec()
    runs.update(old := first[0], changed(old.value, reason="with the etag of the list"))
    with pytest.raises(Changed):
        runs.update(old := first[0], changed(old.value, reason="again"))


def test_an_hour_is_claimed_by_one_and_dropped_unless_a_run_came(runs: Runs) -> None:
    """Of two concurrent checks, one claims the hour. An hour that gained a run since is not removed."""
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
    """Every field of a filter narrows the list, alone and combined; a run's state in the filter follows the run."""
    runs.insert(run("mnist-1", 1, owner="ann", tags={"a": "x y", "b": "1"}))
    runs.insert(run("mnist-2", 2, owner="ann", owner_id="0a1b"))
    runs.insert(run("mnist-3", 3, owner="bob", tags={"a": "x y"}))
    runs.update(old := runs.get("mnist-2"), changed(old.value, state=RunState.SUBMITTED))

    def names(**wanted: Any) -> list[str]:
        return [r.name for page in pages(runs, RunFilter(**wanted), 2) for r in page]

    assert names(owner="ann") == ["mnist-2", "mnist-1"]
    assert names(owner="0a1b") == ["mnist-2"]
    assert names(tag="a=x y") == ["mnist-3", "mnist-1"]
    assert names(tag="a=x y", owner="ann") == ["mnist-1"]
    assert (names(state="submitted"), names(state="received")) == (["mnist-2"], ["mnist-3", "mnist-1"])
    assert names(state="submitted", owner="bob") == []


def test_runs_that_have_not_ended_are_found_at_once(runs: Runs) -> None:
    """One query finds the runs in any of the states that have not ended, and no ended run."""
    for state in (state for state in RunState if state is not RunState.BROKEN):
        runs.insert(run(f"mnist-{state}"))
        runs.update(old := runs.get(f"mnist-{state}"), changed(old.value, state=state))
    assert sorted(runs.live()) == sorted((f"mnist-{state}", "cpu-cluster", state) for state in LIVE)


def test_the_rows_that_find_a_run_follow_it(runs: Runs) -> None:
    """Every filter finds a run by its current values, and not by its former values."""
    runs.insert(run("mnist-1", owner="ann", tags={"a": "1"}))
    stored = runs.update(
        old := runs.get("mnist-1"), changed(old.value, best_metrics={"accuracy": 0.5}, cluster="gpu-cluster")
    )
    runs.update(stored, changed(stored.value, tags={"b": "2"}, reason="w" * 3000))
    for wanted in (RunFilter(), RunFilter(owner="ann"), RunFilter(cluster="gpu-cluster"), RunFilter(tag="b=2")):
        assert runs.page(wanted, 9).runs == [runs.get("mnist-1").value]
    assert not runs.page(RunFilter(cluster="cpu-cluster"), 9).runs + runs.page(RunFilter(tag="a=1"), 9).runs


def test_a_condition_finds_runs_over_all_pages(runs: Runs) -> None:
    """A condition finds every matching run once, wherever it lies, in pages of the requested length."""
    for i in range(30):
        runs.insert(run(f"mnist-{i}", i, best_metrics={"accuracy": i / 30}, owner="ann" if i % 2 else "bob"))
    seventh = RunFilter(holds=lambda one: one.measured.best["accuracy"] * 30 % 7 < 0.5)
    third = RunFilter(owner="ann", state="received", holds=lambda one: one.created_at.second % 3 == 0)
    for wanted in (seventh, third):
        having = [one.name for one in runs.newest() if index.fits(one, wanted)]
        assert len(having) >= 4
        found = pages(runs, wanted, 2)
        assert [one.name for page in found for one in page] == having
        assert max(map(len, found)) == 2


def test_an_empty_table_has_no_runs(runs: Runs) -> None:
    """Before the first insert, lists are empty and nothing raises."""
    assert runs.newest() == []
    assert runs.page(RunFilter(), 9) == RunPage([], "")
    with pytest.raises(NotFound):
        runs.get("mnist-0")


def test_a_half_done_insert_is_completed() -> None:
    """If a fake's insert crashes between its writes, the next insert completes it with the first one's time."""
    runs = FakeRuns()
    runs.half_insert(run())
    assert runs.hours() == [HOUR]
    assert not runs.insert(run(seconds=5))
    assert runs.get("mnist-0").value.created_at == NOW


def test_runs_are_found_by_the_beginning_of_their_names(runs: Runs) -> None:
    """Names with a given prefix are returned in order, up to the limit; an unknown prefix gives none."""
    for name in ("mnist-10", "mnist-11", "mnist-2", "cifar-1"):
        runs.insert(run(name))
    assert runs.beginning_with("mnist-1", 9) == ["mnist-10", "mnist-11"]
    assert runs.beginning_with("mnist-", 2) == ["mnist-10", "mnist-11"]
    assert runs.beginning_with("mnist-10", 9) == ["mnist-10"]
    assert runs.beginning_with("zoo", 9) == []


def test_the_run_of_a_moment_ago_may_be_written_under_its_etag(runs: Runs) -> None:
    """`recent` returns the whole run that this process just inserted, read or wrote; a write under its etag
    succeeds."""
    made = run(request=JobSpec(command=read_command("x")), timeout_seconds=60)
    runs.insert(made)
    first = runs.recent("mnist-0")
    assert (first.value, first.etag) == (made, runs.get("mnist-0").etag)
    second = runs.update(first, changed(first.value, state=RunState.SUBMITTED, attempts=1, archive_tries=2))
    again = runs.recent("mnist-0")
    assert (again.value, again.etag) == (runs.get("mnist-0").value, second.etag)
    assert runs.update(again, changed(again.value, job="mnist-0")).value.archiving.tries == 2
    with pytest.raises(NotFound, match="mnist-9"):
        runs.recent("mnist-9")


def test_who_remembers_an_older_row_finds_out_by_writing(tables: StorageClients) -> None:
    """If another process wrote meanwhile, an update under the remembered etag raises Changed, and `get` returns the
    new row."""
    here, there = TableRuns(tables.table), TableRuns(tables.table)
    here.insert(run())
    there.update(old := there.get("mnist-0"), changed(old.value, job="mnist-0"))
    with pytest.raises(Changed):
        here.update(known := here.recent("mnist-0"), changed(known.value, state=RunState.SUBMITTED))
    assert here.get("mnist-0").value.jobs.job == here.recent("mnist-0").value.jobs.job == "mnist-0"


def test_a_row_is_remembered_for_seconds() -> None:
    """A remembered row is dropped after seconds, or when a write finds that the row has changed."""
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
