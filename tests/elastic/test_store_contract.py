"""The rules of torch.distributed.Store, tested over PyTorch's own stores and over a table, also behind a PrefixStore.

Where PyTorch's stores differ, the stricter store sets the rule. The constants below name the stores that keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from torch.distributed import DistStoreError, FileStore, HashStore, PrefixStore, QueueEmptyError, Store, TCPStore
from torch.distributed.elastic.utils import store as store_util

from trainers.elastic.client import Table
from trainers.elastic.store import AzureTableStore
from trainers.elastic.values import MAX_VALUE

KINDS = ["hash", "tcp", "file", "azure", "azure, prefixed"]
# Where the stores of torch 2.13 differ. All others do as the tests say.
NAMES_MISSING_KEYS = {"tcp", "azure", "azure, prefixed"}  # HashStore's and FileStore's time-outs do not
RAISES_STORE_ERROR = {"hash", "tcp", "azure", "azure, prefixed"}  # FileStore: RuntimeError, which the other is too
KNOWS_WHAT_IT_DELETED = {"hash", "tcp", "azure", "azure, prefixed"}  # FileStore says True for what was never there
REFUSES_TO_ADD_TO_TEXT = {"hash", "file", "azure", "azure, prefixed"}  # TCPStore closes the connection for good
PREFIX_TAKES_UTF8_ONLY = {"azure, prefixed"}  # C++ hands keys to Python as text
NO_QUEUES = {"file"}  # nor list_keys
EXTENDED = {"hash", "tcp", "azure", "azure, prefixed"}  # FileStore has multi_get and the like, and says it has not

SHORT = timedelta(milliseconds=300)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, tmp_path: Path, table: Table, run: str) -> Any:
    made: dict[str, Callable[[], Store]] = {
        "hash": HashStore,
        "tcp": lambda: TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False),
        "file": lambda: FileStore(str(tmp_path / "store"), 1),
        "azure": lambda: AzureTableStore(table, run),
        "azure, prefixed": lambda: PrefixStore("outer", PrefixStore("inner", AzureTableStore(table, run))),
    }
    return made[kind]()


def in_threads(store: Any, count: int, work: Callable[[Any, int], object]) -> list[object]:
    """Call `work` in threads. Each thread gets a clone, because a TCPStore blocks other threads while one waits."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, [store.clone() for _ in range(count)], range(count)))


def test_values_come_back_as_bytes(store: Any) -> None:
    """Values come back as bytes, and text as UTF-8. The last write counts."""
    store.set("bytes", b"\x00\xff")
    store.set("text", "first")
    store.set("text", "später")
    assert store.get("bytes") == b"\x00\xff"
    assert store.get("text") == "später".encode()


def test_an_empty_value_is_a_value(store: Any) -> None:
    """A key with an empty value exists."""
    store.set("key", "")
    assert store.check(["key"])
    assert store.get("key") == b""


def test_get_waits(store: Any) -> None:
    """get returns when another thread has set the key."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(store.clone().get, "late")
        store.set("late", "here")
        assert answer.result(30) == b"here"


def test_wait_waits_for_all(store: Any) -> None:
    """wait returns when the last of the keys exists, and at once for no keys."""
    store.wait([])
    keys = [f"key{number}" for number in range(6)]
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(store.clone().wait, keys)
        for key in keys[:-1]:
            store.set(key, "x")
        assert not done.done()
        store.set(keys[-1], "x")
        done.result(30)


def test_waiting_ends(store: Any, kind: str) -> None:
    """After the timeout, the error names the missing keys and no others."""
    store.set("yes", "x")

    def ask(clone: Any, number: int) -> str:
        clone.set_timeout(SHORT)
        assert clone.timeout == SHORT
        calls: list[Callable[[], object]] = [
            lambda: clone.get("no"),
            lambda: clone.wait(["yes", "no"]),
            lambda: clone.multi_get(["yes", "no", *"abc"]),
        ]
        with pytest.raises(DistStoreError if kind in RAISES_STORE_ERROR else RuntimeError) as caught:
            calls[number]()
        return str(caught.value).partition("keys:")[2]

    named = in_threads(store, 3, ask)
    if kind in NAMES_MISSING_KEYS:
        assert all("no" in str(keys) for keys in named)
        assert kind == "tcp" or not any("yes" in str(keys) for keys in named)  # TCPStore names all that it was asked


def test_wait_with_its_own_timeout(store: Any, kind: str) -> None:
    """A timeout given to wait replaces the store's timeout. A millisecond is enough for existing keys."""
    store.set("yes", "x")
    store.wait(["yes"], timedelta(milliseconds=1) if kind != "tcp" else SHORT)  # TCPStore needs time for its answer
    with pytest.raises(RuntimeError):
        store.wait(["no"], timedelta(milliseconds=1))


def test_check(store: Any) -> None:
    """check returns whether all keys exist, and True for no keys."""
    store.multi_set([f"key{number}" for number in range(5)], ["x"] * 5)
    assert store.check([])
    assert store.check(["key0"])
    assert store.check([f"key{number}" for number in range(5)])
    assert not store.check([f"key{number}" for number in range(6)])
    assert not store.check(["key0", "no"])


def test_add(store: Any) -> None:
    """add starts at 0, returns the sum, stores it as decimal text, continues from such text, and wraps at 64 bits."""
    assert [store.add("n", amount) for amount in (5, -7, 0)] == [5, -2, -2]
    assert store.get("n") == b"-2"
    store.set("n", " 40")
    assert store.add("n", 2) == 42
    store.set("n", str(2**63 - 1))
    assert store.add("n", 1) == -(2**63)


def test_add_to_what_is_no_number(store: Any, kind: str) -> None:
    """add refuses a value that is not a number, and leaves the value unchanged."""
    store.set("n", "text")
    with pytest.raises(ValueError if kind in REFUSES_TO_ADD_TO_TEXT else RuntimeError):
        store.add("n", 1)
    assert kind not in REFUSES_TO_ADD_TO_TEXT or store.get("n") == b"text"


def test_compare_set(store: Any) -> None:
    """compare_set replaces only the expected value, and returns the value after the call. A missing key counts as
    empty."""
    assert store.compare_set("k", "x", "y") == b"x"  # missing, and something was expected: nothing is set
    assert not store.check(["k"])
    assert store.compare_set("k", "", "a") == b"a"
    assert store.compare_set("k", "", "b") == b"a"
    assert store.compare_set("k", "a", "b") == b"b"
    assert store.compare_set("k", "a", "c") == b"b"
    assert store.compare_set("k", "b", "") == b""
    assert store.check(["k"])
    assert store.compare_set("k", "", "d") == b"d"


def test_append(store: Any) -> None:
    """append adds to the value, or creates it."""
    store.append("k", "a")
    store.append("k", "b\x00")
    assert store.get("k") == b"ab\x00"


def test_delete_key(store: Any, kind: str) -> None:
    """delete_key deletes a key, and returns whether the key existed."""
    store.set("k", "x")
    assert store.delete_key("k")
    assert not store.check(["k"])
    assert store.delete_key("k") == (kind not in KNOWS_WHAT_IT_DELETED)


def test_num_keys(store: Any) -> None:
    """num_keys grows by one for each new key."""
    before = store.num_keys()
    for key in ("a", "b", "a"):
        store.set(key, "x")
    assert store.num_keys() == before + 2


def test_many_at_once(store: Any, kind: str) -> None:
    """multi_get returns the values in the order of the keys, including repeated keys."""
    keys = [f"key{number}" for number in range(12)]
    store.multi_set(keys, [str(number) for number in range(12)])
    assert store.multi_get([*reversed(keys), "key0"]) == [*(b"%d" % number for number in reversed(range(12))), b"0"]
    assert store.multi_get([]) == []
    assert store.has_extended_api() == (kind in EXTENDED)


def test_any_bytes_are_a_key(store: Any, kind: str) -> None:
    """Keys may contain any bytes: long keys and characters that Azure forbids stay distinct."""
    keys: list[str] = [
        "",
        "a/b",
        "a\\b",
        "a#b",
        "a?b",
        "a%2fb",
        "a~2fb",
        "a~b",
        "A/B",
        "a b",
        "a'b",
        "\t\n\x7f",
        "ä",
        "~~",
    ]
    keys += ["k" * 600, "k" * 601, "k" * 5000, "/" * 300, "/" * 301]
    if kind not in PREFIX_TAKES_UTF8_ONLY:
        keys += [b"\xff\x00", b"\xff", b"\x00"]  # type: ignore[list-item]
    in_threads(store, 4, lambda s, part: [s.set(key, str(i)) for i, key in enumerate(keys) if i % 4 == part])
    assert [store.get(key) for key in keys] == [b"%d" % i for i in range(len(keys))]


def test_prefixes_part(store: Any) -> None:
    """The same key under two prefixes is two keys. A prefix only makes the key longer."""
    one, two = PrefixStore("one", store), PrefixStore("two", store)
    one.set("k", "1")
    assert not two.check(["k"])
    assert two.add("k", 2) == 2
    assert one.compare_set("k", "1", "3") == b"3"
    assert store.get("one/k") == b"3"
    assert two.delete_key("k")
    assert not store.check(["two/k"])


def test_the_timeout_reaches_through_a_prefix(store: Any) -> None:
    """set_timeout on a PrefixStore sets the timeout of the underlying store."""
    PrefixStore("one", store).set_timeout(SHORT)
    assert store.timeout == SHORT
    with pytest.raises(RuntimeError):
        store.get("no")


@pytest.mark.parametrize("size", [0, 2**16 - 1, 2**16, 2**16 + 1, MAX_VALUE])
def test_big_values(store: Any, size: int) -> None:
    """A value comes back unchanged, below and above 64 KiB and up to our limit."""
    value = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    store.set("big", value)
    assert store.get("big") == value


def test_threads_add_exactly(store: Any) -> None:
    """Eight threads that add at the same time get different sums."""
    sums = in_threads(store, 8, lambda s, _: [s.add("n", 1) for _ in range(4)])
    assert sorted(number for part in sums for number in part) == list(range(1, 33))  # type: ignore[attr-defined]


def test_compare_set_is_a_lock(store: Any) -> None:
    """Of all threads that compare_set a missing key, the one whose value is returned to all has won."""
    answers = in_threads(store, 8, lambda s, number: s.compare_set("lock", "", str(number)))
    assert set(answers) == {store.get("lock")}


def test_agents_synchronise(store: Any) -> None:
    """The exchanges of PyTorch's elastic agents, synchronize and barrier, work."""
    data = in_threads(store, 3, lambda s, rank: store_util.synchronize(s, b"%d" % rank, rank, 3, "data", timeout=30))
    assert data == [[b"0", b"1", b"2"]] * 3
    in_threads(store, 3, lambda s, rank: store_util.barrier(s, 3, "exit", barrier_timeout=30, rank=rank))


def test_keys_are_listed(store: Any, kind: str) -> None:
    """list_keys returns all keys of the store, whatever their values."""
    for key in ("a", "b/c", "d e~"):
        store.set(key, "value")
    own = {"efcount/"} if kind == "file" else set()  # FileStore counts its users in a key
    assert set(store.list_keys()) - own == {"a", "b/c", "d e~"}


def test_queues(store: Any, kind: str) -> None:
    """A queue returns its values in order, each once. An empty queue raises an error, or waits for a value."""
    if kind in NO_QUEUES:
        with pytest.raises((NotImplementedError, RuntimeError)):
            store.queue_push("q", "value")
        return
    assert store.queue_len("q") == 0
    with pytest.raises(QueueEmptyError):
        store.queue_pop("q", False)
    for value in ("one", "", "three"):
        store.queue_push("q", value)
    assert (store.queue_len("q"), store.check(["q"])) == (3, True)
    assert [store.queue_pop("q") for _ in range(3)] == [b"one", b"", b"three"]
    assert (store.queue_len("q"), store.check(["q"])) == (0, False)
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(store.clone().queue_pop, "q")
        store.queue_push("q", "late")
        assert later.result(30) == b"late"
    store.set_timeout(timedelta(seconds=0.2))
    with pytest.raises(DistStoreError):
        store.queue_pop("q")


def test_a_queue_gives_each_value_once(table: Table, run: str) -> None:
    """Each value of a queue reaches one of several readers."""
    store = AzureTableStore(table, run)
    for number in range(12):
        store.queue_push("q", str(number))
    found = in_threads(store, 3, lambda each, _: [each.queue_pop("q") for _ in range(4)])
    assert sorted(int(value) for part in found for value in part) == list(range(12))  # type: ignore[attr-defined]
