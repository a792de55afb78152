"""The contract of shared.drops.ports.Drops, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from azure.data.tables import TableServiceClient

from emulators.testing.azurite import Azurite
from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.drop_table import TableDrops
from shared.drops.model import Drop, DropState
from shared.drops.ports import AlreadyAdded, Drops
from shared.jobs.readers.expressions import read_command
from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, Changed
from shared.kernel.versioned import Stored
from tests.contract.wire import Dying
from tests.fakes.ports import Crash, FakeDrops

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ODD_NAMES = ["a b", "a#b?c%2F", "a\\b", "x'y\"z", "übung 数据 🚂", "é" * 200, "n" * 1000, "\x01\x7f", "..", ""]


@pytest.fixture(params=["fake", "tables", "own_tables"])
def drops(request: pytest.FixtureRequest) -> Drops:
    if request.param == "fake":
        return FakeDrops()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableDrops(tables.table)


def drop(name: str = "one", route: str = "mnist", state: DropState = DropState.OPEN) -> Drop:
    return Drop(DropKey(route, name), state, token="t", opened_at=NOW)


def open_names(drops: Drops) -> set[str]:
    return {found.key.name for found in drops.open()}


def test_a_record_comes_back_as_it_was_written(drops: Drops) -> None:
    """Every field survives, including microseconds and numbers beyond 32 bits."""
    full = replace(
        drop(state=DropState.SEALED),
        generation=3,
        fingerprint="f" * 64,
        run="mnist-0123",
        request=JobSpec(command=read_command("python träin.py 🚂"), inputs={"epochs": 2}),
        blobs=10_000,
        bytes=5 * 2**40,
        sealed_at=NOW + timedelta(microseconds=1),
        newest=NOW,
        why="quiet for 60 s: 'all' said",
        code="quiet",
    )
    stored = drops.insert(full)
    assert drops.get(full.key) == stored
    assert stored.value == full


def test_a_drop_that_was_never_written_is_none(drops: Drops) -> None:
    """`get` of an unknown drop returns None, before the first write and after."""
    assert drops.get(DropKey("mnist", "two")) is None
    drops.insert(drop("one"))
    assert drops.get(DropKey("mnist", "two")) is None


def test_a_second_insert_changes_nothing(drops: Drops) -> None:
    """`insert` raises Changed if a record exists, and leaves that record."""
    first = drops.insert(drop())
    with pytest.raises(Changed):
        drops.insert(replace(drop(), token="other"))
    assert drops.get(first.value.key) == first


def test_a_drop_is_new_until_it_was_asked_for_or_added(drops: Drops) -> None:
    """A drop that this process has not read or inserted counts as new. If it has a record after all, `insert`
    raises Changed."""
    assert drops.is_new(drop("one").key)
    drops.insert(drop("one"))
    assert not drops.is_new(drop("one").key)
    drops.get(drop("one").key)
    assert not drops.is_new(drop("one").key)


def test_of_many_inserts_at_once_one_is_made(own_tables: StorageClients) -> None:
    """Of many threads that insert the same drop at once, one succeeds. The others get AlreadyAdded with the stored
    record, or Changed, as do later inserts."""
    drops, together = TableDrops(own_tables.table), threading.Barrier(6)

    def insert(token: str) -> str:
        together.wait(30)
        try:
            return drops.insert(replace(drop(), token=token)).value.token
        except AlreadyAdded as exc:
            told.append(exc.there)
        except Changed:
            late.append(token)
        return ""

    told, late = list[Stored[Drop]](), list[str]()
    with ThreadPoolExecutor(6) as pool:
        [made] = filter(None, pool.map(insert, "abcdef"))
    stored = drops.get(drop().key)
    assert stored is not None
    assert stored.value.token == made
    assert all(there == stored for there in told)
    assert len(told) + len(late) == 5
    with pytest.raises(Changed):
        drops.insert(drop())


def test_replace_needs_the_latest_etag(drops: Drops) -> None:
    """Of two writers that read the same record, the second raises Changed."""
    first = drops.insert(drop())
    second = drops.replace(replace(first.value, token="a"), first)
    with pytest.raises(Changed):
        drops.replace(replace(first.value, token="b"), first)
    with pytest.raises(Changed):
        drops.replace(replace(first.value, state=DropState.SEALED), first)
    assert drops.get(first.value.key) == second
    assert open_names(drops) == {"one"}


@pytest.mark.parametrize("state", list(DropState))
def test_replace_of_a_record_that_is_gone_raises_changed(drops: Drops, state: DropState) -> None:
    """`replace` never creates a record."""
    first = drops.insert(drop())
    drops.delete(first)
    with pytest.raises(Changed):
        drops.replace(drop(state=state), first)
    assert drops.get(first.value.key) is None
    assert open_names(drops) == set()


def test_delete_needs_the_latest_etag_and_twice_is_once(drops: Drops) -> None:
    """`delete` with an old etag raises Changed; `delete` of a missing record does nothing."""
    first = drops.insert(drop())
    second = drops.replace(replace(first.value, token="a"), first)
    with pytest.raises(Changed):
        drops.delete(first)
    drops.delete(second)
    drops.delete(second)
    assert drops.get(first.value.key) is None
    assert open_names(drops) == set()


def test_open_finds_exactly_the_unfinished_drops(drops: Drops) -> None:
    """A drop is in `open` exactly while it is open or sealing, through any changes of state."""
    stored = drops.insert(drop())
    drops.insert(drop("rejected", state=DropState.REJECTED))
    for state in (*DropState, *reversed(DropState)):
        stored = drops.replace(replace(stored.value, state=state), stored)
        expected = [stored.value] if state in (DropState.OPEN, DropState.SEALING) else []
        assert list(drops.open()) == expected


def test_listed_gives_a_routes_drops_by_name(drops: Drops) -> None:
    """`listed` sorts by route and name, and a route's drops exclude those of a route with a longer name."""
    names = [("b", "1"), ("a", "z"), ("a", "B"), ("a", "a-b"), ("a", "a.b"), ("a", "a b"), ("a", "é"), ("a-", "1")]
    names += [("a", "a"), ("a", "a0"), ("ab", "1"), ("a", "_"), ("a", "~"), ("a", "{"), ("a", "🚂"), ("a", "ｱ")]
    for route, name in names:
        drops.insert(drop(name, route, DropState.SEALED))
    assert [(d.key.route, d.key.name) for d in drops.listed()] == sorted(names)
    assert [d.key.name for d in drops.listed("a")] == sorted(name for route, name in names if route == "a")
    assert list(drops.listed("nowhere")) == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_text_can_be_a_drop(drops: Drops, name: str) -> None:
    """A drop with any name is stored, found, listed and deleted."""
    stored = drops.insert(drop(name, route=name))
    assert drops.get(DropKey(name, name)) == stored
    assert [d.key for d in drops.listed(name)] == [DropKey(name, name)]
    drops.delete(stored)
    assert list(drops.listed()) == []


def test_a_long_request_is_kept_whole(tables: StorageClients) -> None:
    """A job of 300,000 characters of JSON comes back whole; a shorter job that replaces it leaves no remains."""
    drops = TableDrops(tables.table)
    first = drops.insert(replace(drop(), request=JobSpec(command=read_command("🚂x" * 24_000))))
    assert drops.get(first.value.key) == first
    second = drops.replace(replace(first.value, request=JobSpec(command=read_command("x"))), first)
    assert drops.get(first.value.key) == second


def test_a_request_beyond_the_rows_limit_is_refused_in_words(tables: StorageClients) -> None:
    """A request that is too long to store raises BadInput with field and limit, and nothing is written."""
    drops = TableDrops(tables.table)
    with pytest.raises(BadInput, match=r"request takes \d+ characters as JSON; the record has room for 320000"):
        drops.insert(replace(drop(), request=JobSpec(command=read_command("x" * 400_000))))
    assert drops.get(drop().key) is None


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_no_crash_parts_a_drop_from_the_open_ones(
    account: Azurite, tables: StorageClients, at: int, sent: bool
) -> None:
    """Wherever a write crashes, `open` includes the drop exactly if its record is unfinished."""
    drops = TableDrops(tables.table)
    sealed = drops.insert(drop("sealed", state=DropState.SEALED))
    rejected = drops.insert(drop("rejected", state=DropState.REJECTED))
    opened = drops.insert(drop("open"))
    steps: list[Callable[[TableDrops], object]] = [
        lambda d: d.insert(drop("new")),
        lambda d: d.replace(replace(sealed.value, state=DropState.OPEN), sealed),
        lambda d: d.replace(replace(rejected.value, state=DropState.SEALED), rejected),
        lambda d: d.replace(replace(opened.value, state=DropState.SEALED), opened),
    ]
    for step in steps:
        connection, transport = account.connection_string, Dying(at, sent)
        with TableServiceClient.from_connection_string(connection, transport=transport) as service, suppress(Crash):
            step(TableDrops(service))
        unfinished = [d for d in drops.listed() if d.state in (DropState.OPEN, DropState.SEALING)]
        assert sorted(d.key for d in drops.open()) == sorted(d.key for d in unfinished)


def test_a_sealing_keeps_its_generation(drops: Drops) -> None:
    """Any write that makes a drop sealing keeps that generation, newest first per drop; other writes keep none."""
    before = drops.insert(drop("g"))
    for number in (1, 2, 11):
        sealing = replace(drop("g", state=DropState.SEALING), generation=number, run=f"run-{number}", blobs=number)
        before = drops.replace(replace(sealing, state=DropState.SEALED), drops.replace(sealing, before))
    drops.replace(replace(before.value, generation=12, state=DropState.OPEN), before)

    assert [g.number for g in drops.generations(DropKey("mnist", "g"))] == [11, 2, 1]
    assert [g.number for g in drops.generations(DropKey("mnist", "g"), limit=1)] == [11]
    assert drops.generation(DropKey("mnist", "g"), 2) == drops.generations(DropKey("mnist", "g"))[1]
    assert drops.generation(DropKey("mnist", "g"), 12) is None
    assert drops.generations(DropKey("mnist", "g!")) == []


def test_a_forgotten_drop_leaves_nothing(drops: Drops) -> None:
    """`forget` deletes the record and all its generations, even more than fit one transaction; a later drop of the
    same name starts empty."""
    before = drops.insert(drop("f"))
    for number in range(1, 104):
        sealing = replace(drop("f", state=DropState.SEALING), generation=number)
        before = drops.replace(sealing, before)
    other = drops.insert(drop("f2"))
    drops.replace(replace(other.value, state=DropState.SEALING, generation=1), other)
    with pytest.raises(Changed):
        drops.forget(replace(before, etag='W/"0x1"'))
    drops.forget(before)
    assert drops.get(before.value.key) is None
    assert drops.generations(before.value.key) == []
    assert len(drops.generations(DropKey("mnist", "f2"))) == 1
    assert open_names(drops) == {"f2"}


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("at", range(5))
def test_a_drop_that_was_half_forgotten_is_forgotten(
    account: Azurite, tables: StorageClients, at: int, sent: bool
) -> None:
    """Wherever `forget` crashes, the record stays until its generations are deleted, so a retry finishes."""
    drops = TableDrops(tables.table)
    before = drops.insert(drop("f"))
    before = drops.replace(replace(drop("f", state=DropState.SEALING), generation=1), before)
    connection, transport = account.connection_string, Dying(at, sent)
    with TableServiceClient.from_connection_string(connection, transport=transport) as service, suppress(Crash):
        TableDrops(service).forget(before)
    if stored := drops.get(before.value.key):
        drops.forget(stored)
    assert drops.get(before.value.key) is None
    assert drops.generations(before.value.key) == []


def sealed(drops: Drops, key: str, files: int, at: datetime) -> Drop:
    """A drop that closed with this number of files at this time; again, if the drop exists."""
    route, _, name = key.partition("/")
    there = drops.get(DropKey(route, name)) or drops.insert(drop(name, route))
    opened = drops.replace(replace(there.value, state=DropState.OPEN), there)
    number = opened.value.generation + 1
    closing = replace(opened.value, state=DropState.SEALING, generation=number, blobs=files, sealed_at=at)
    return drops.replace(replace(closing, state=DropState.SEALED), drops.replace(closing, opened)).value


def test_the_files_that_closings_brought_are_added_up(drops: Drops) -> None:
    """`added` sums the files that closings brought to a route in a period without its end. A later closing with
    fewer files subtracts the difference, and any name counts."""
    for second, (key, files) in enumerate((("mnist/a", 3), ("mnist/übung 数据", 4), ("other/a", 9), ("mnist/a", 1))):
        sealed(drops, key, files, NOW + timedelta(seconds=second))
    sealed(drops, "mnist!x/b", 20, NOW)
    later = [NOW + timedelta(seconds=second) for second in range(5)]
    assert drops.added("mnist", NOW, later[4]) == 3 + 4 - 2
    assert (drops.added("mnist", NOW, later[1]), drops.added("mnist", later[1], later[3])) == (3, 4)
    assert drops.added("mnist", later[4], later[4]) == 0


def test_loose_files_that_became_runs_are_counted(drops: Drops) -> None:
    """A route's loose files are counted up to the requested limit; a forgotten file no longer counts."""
    assert drops.single_files("mnist", 10) == 0
    for name in ("z.csv", "a.csv", "a.zip", "é.csv"):
        sealed(drops, f"mnist/{name}", 1, NOW)
    sealed(drops, "mnist/folder", 2, NOW)
    sealed(drops, "other/b.csv", 1, NOW)
    drops.insert(drop("open.csv"))
    assert [drops.single_files("mnist", most) for most in (10, 2)] == [3, 2]
    stored = drops.get(DropKey("mnist", "z.csv"))
    assert stored is not None
    for _ in range(2):
        drops.forget(stored)
    assert drops.single_files("mnist", 10) == 2


def test_of_loose_files_at_once_no_more_than_the_limit_are_counted(drops: Drops) -> None:
    """Ten files compete for three places. A file that has a place keeps it, and a returned place is free again."""
    names = [DropKey("mnist", f"{number}.csv") for number in range(10)]

    def take(key: DropKey) -> bool:
        return drops.count_single_file(key, 3)

    with ThreadPoolExecutor(10) as pool:
        taken = [key for key, got in zip(names, pool.map(take, names), strict=True) if got]
    assert (len(taken), drops.single_files("mnist", 10)) == (3, 3)
    assert drops.count_single_file(taken[0], 3)
    drops.uncount_single_file(taken[0])
    drops.uncount_single_file(taken[0])
    assert drops.count_single_file(next(key for key in names if key not in taken), 3)


def test_loose_files_from_before_their_rows_are_found(tables: StorageClients) -> None:
    """The first count walks over the route once and writes missing rows; later counts take one request."""
    drops = TableDrops(tables.table)
    for name in ("a.csv", "b.csv"):
        sealed(drops, f"mnist/{name}", 1, NOW)
    rows = tables.table.get_table_client("drops")
    for row in list(rows.query_entities("RowKey ge 'l!' and RowKey lt 'm'")):
        rows.delete_entity(row["PartitionKey"], row["RowKey"])
    assert drops.single_files("mnist", 10) == 2
    with pytest.MonkeyPatch.context() as without:
        without.setattr(drops, "listed", None)
        assert (drops.single_files("mnist", 10), drops.single_files("mnist", 1)) == (2, 1)
