"""A table store under broken connections and refusals of the service: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from torch.distributed import DistNetworkError, DistStoreError

from emulators.process import wait_for
from tests.elastic.proxy import FAULTS, Proxy
from trainers.elastic.client import STALE, Table, connect
from trainers.elastic.errors import Conflict
from trainers.elastic.store import AzureTableStore
from trainers.elastic.values import MAX_VALUE

CALLS: dict[str, Callable[[AzureTableStore], object]] = {
    "set": lambda store: store.set("a", "1"),
    "get": lambda store: store.get("there"),
    "add": lambda store: store.add("n", 1),
    "compare_set": lambda store: store.compare_set("new", "", "mine"),
    "append": lambda store: store.append("there", "+"),
    "check": lambda store: store.check(["there"] * 5),
    "delete": lambda store: store.delete_key("there"),
    "count": lambda store: store.num_keys(),
    "multi_get": lambda store: store.multi_get([f"k{i}" for i in range(5)]),
}
ANSWERS = {"get": b"x", "add": 6, "compare_set": b"mine", "check": True, "delete": True, "count": 7}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_survives_every_fault(name: str, table: Table, shaky: Table, proxy: Proxy, run: str) -> None:
    """Each call under each fault has the same answer and effect as without faults."""
    AzureTableStore(table, run).multi_set(["there", "n", *(f"k{i}" for i in range(5))], ["x", "5", *"01234"])
    proxy.faults.extend(fault for fault in FAULTS if fault != "slow")
    answer = CALLS[name](AzureTableStore(shaky, run))
    assert answer == ANSWERS.get(name, answer)
    assert not proxy.faults
    plain = AzureTableStore(table, run)
    effects = {"n": b"6" if name == "add" else b"5", "there": b"x+" if name == "append" else b"x"}
    effects |= {"a": b"1"} if name == "set" else {"new": b"mine"} if name == "compare_set" else {}
    if name == "delete":
        assert not plain.check([effects.popitem()[0]])
    assert {key: plain.get(key) for key in effects} == effects


@pytest.mark.parametrize("value", ["", "5"])
def test_an_add_with_a_lost_answer_counts_once(value: str, table: Table, shaky: Table, proxy: Proxy, run: str) -> None:
    """An add whose answer is lost counts once, also if another process adds before the retry."""
    store, other = AzureTableStore(shaky, run), AzureTableStore(table, run)
    if value:
        store.set("n", value)
    proxy.methods = {"POST", "PUT"}
    proxy.after = "1"  # time for the other
    proxy.faults.extend(["cut after", "busy"])
    with ThreadPoolExecutor(1) as pool:
        mine = pool.submit(store.add, "n", 1)
        other.wait(["n"])
        wait_for(lambda: other.get("n") == b"%d" % (int(value or 0) + 1), 30, "the first add to arrive", every=0.01)
        theirs = other.add("n", 1)
        assert [mine.result(30), theirs] == [int(value or 0) + 1, int(value or 0) + 2]
    assert other.get("n") == b"%d" % theirs


def test_a_version_that_was_overtaken_replaces_nothing(table: Table, shaky: Table, proxy: Proxy, run: str) -> None:
    """A writer that learns late of its success gets a version that replaces nothing if another process wrote in the
    meantime."""
    until = time.monotonic() + 30
    mine, theirs = shaky.rows(run, "x"), table.rows(run, "x")
    first = mine.insert("k", b"0", until)
    proxy.methods, proxy.after = {"PUT"}, "1"
    proxy.faults.extend(["cut after", "busy"])
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(mine.replace, "k", b"1", first, until)
        wait_for(lambda: theirs.many(["k"], until) == {"k": b"1"}, 30, "the first write to arrive", every=0.01)
        row = theirs.get("k", until)
        assert row is not None
        theirs.replace("k", b"2", row.version, until)
        version = late.result(30)
    assert version.etag == STALE
    with pytest.raises(Conflict):
        mine.replace("k", b"3", version, until)


def test_adds_through_a_bad_network(shaky: Table, proxy: Proxy, table: Table, run: str) -> None:
    """Six threads add through a network that fails a third of the requests. Each sum occurs once, and no call
    raises an error."""
    proxy.rate = 0.33
    store = AzureTableStore(shaky, run)
    with ThreadPoolExecutor(6) as pool:
        sums = [total for part in pool.map(lambda _: [store.add("n", 1) for _ in range(4)], range(6)) for total in part]
    assert sorted(sums) == list(range(1, 25))
    assert AzureTableStore(table, run).get("n") == b"24"
    assert {fault for _, fault in proxy.seen} >= {"cut before", "cut after", "busy"}


def test_retry_after_is_honoured(shaky: Table, proxy: Proxy, run: str) -> None:
    """The client does not ask again before the time in Retry-After."""
    proxy.after = "1"
    proxy.faults.append("throttled")
    began = time.monotonic()
    AzureTableStore(shaky, run).set("k", "x")
    assert time.monotonic() - began >= 1
    assert len(proxy.seen) == 2


def test_an_outage_ends_in_a_clear_error(shaky: Table, proxy: Proxy, run: str) -> None:
    """A table that stays unavailable raises DistNetworkError after the timeout. The error names call, key, table,
    attempts and the last problem."""
    proxy.rate = 1.1
    proxy.faults.extend(["busy"] * 1000)
    store = AzureTableStore(shaky, run, timedelta(seconds=0.5))
    said = r"wait here: Table\(store at http://127.0.0.1:\d+/devstoreaccount1\): \d+ tries in 0\.\d s, the last: 503 "
    with pytest.raises(DistNetworkError, match=said):
        store.wait(["here"])
    assert 2 < len(proxy.seen) < 40  # backs off


def test_nobody_there(run: str) -> None:
    """A port without a listener is an outage too."""
    with closing(connect("http://127.0.0.1:9/devstoreaccount1", {})) as table:
        store = AzureTableStore(table, run, timedelta(seconds=0.3))
        with pytest.raises(DistNetworkError, match=r"set k: .*refused"):
            store.set("k", "x")


def test_too_big_is_said(table: Table, run: str) -> None:
    """A value over the limit raises an error at once, with key, size and limit, and sends nothing."""
    before = table.requests
    with pytest.raises(DistStoreError, match=r"set k: .*'k' has 1,036,289 bytes; a row takes 1,036,288"):
        AzureTableStore(table, run).set("k", b"x" * (MAX_VALUE + 1))
    assert table.requests == before


def test_waiting_is_cheap(table: Table, run: str) -> None:
    """Waiting for 100 keys sends one request at a time, at growing intervals."""
    store = AzureTableStore(table, run)
    store.multi_set([f"k{i}" for i in range(20)], ["x"] * 20)
    before = table.requests
    with pytest.raises(DistStoreError, match=r"k20, k21, .* and 70 more"):
        store.wait([f"k{i}" for i in range(100)], timedelta(seconds=2))
    assert table.requests - before <= 15


def test_compare_set_guards_a_section(table: Table, run: str) -> None:
    """Threads that take turns by compare_set never enter the section together."""
    store = AzureTableStore(table, run)
    inside: list[int] = []

    def work(number: int) -> None:
        name = f"thread {number}"
        while store.compare_set("lock", "", name) != name.encode():
            pass
        inside.append(number)
        assert inside == [number]
        inside.clear()
        assert store.compare_set("lock", name, "") == b""

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
