"""PyTorch's key-value store on Azure Table Storage: no node hosts the store, so any node may die.

    store = AzureTableStore(connect(endpoint, os.environ), "run-1")
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)

Each key is a row; all rows of a run are in one partition. `client.Table.clear(run)` deletes them.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from torch.distributed import DistNetworkError, DistStoreError, QueueEmptyError, Store

from . import prefixed
from .client import Rows, Table
from .errors import Conflict, Missing, TableError, Unreachable

# Waiting polls: at short intervals first, because the other node usually writes soon, and later once a second.
FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.01, 1.5, 1.0
# Pauses after a lost race, so that the other writers can finish.
FIRST_RETREAT, LONGEST_RETREAT = 0.005, 0.5
# From this many keys on, one query reads all of them.
MANY = 4
SHOWN_KEYS = 10

# PyTorch (2.13) holds only the C++ half of a store. Behind a PrefixStore, or in a process group, a store that Python
# has released loses its methods ("Not implemented"). So all stores are kept; a process creates only a few.
_KEPT: list[AzureTableStore] = []

Key = str | bytes
Value = str | bytes | Sequence[int]


class AzureTableStore(Store):
    """A torch.distributed.Store with the behavior of TCPStore. Threads may share the store.

    Keys are any bytes, values up to values.MAX_VALUE (1,036,288) bytes. A call retries after throttling and lost
    connections for `timeout` (300 s at first; `set_timeout` changes it; 0 means forever, as everywhere in PyTorch).
    When the timeout is over, a call raises DistStoreError with the missing keys, or DistNetworkError if the table could
    not be reached. A value that is too big raises DistStoreError too.
    """

    def __init__(self, table: Table, run: str, timeout: timedelta = timedelta(seconds=300)) -> None:
        super().__init__()
        self.timeout: timedelta  # of Store; torch's stubs lack it
        self.set_timeout(timeout)
        self.table = table
        self.run = run
        self._rows = table.rows(run, "store")
        self._queues = table.rows(run, "queue")
        _KEPT.append(self)

    def __repr__(self) -> str:
        return f"AzureTableStore({self.run!r} in {self.table})"

    def clone(self) -> AzureTableStore:
        """Return another store of these rows, with a separate timeout."""
        return AzureTableStore(self.table, self.run, self.timeout)

    def has_extended_api(self) -> bool:
        """Return True: append, multi_get and multi_set are supported."""
        return True

    def set(self, key: Key, value: Value) -> None:
        """Write a value over any previous value. One request."""
        with _torch_errors("set", [_raw(key)]):
            self._rows.put(_raw(key), _bytes(value), self._deadline())

    def get(self, key: Key) -> bytes:
        """Wait for a key and return the value. One request for an existing key."""
        return self._await("get", [_raw(key)], self.timeout)[_raw(key)]

    def wait(self, keys: Sequence[Key], timeout: timedelta | None = None) -> None:
        """Wait until every key exists."""
        self._await("wait", [_raw(key) for key in keys], self.timeout if timeout is None else timeout, values=False)

    def check(self, keys: Sequence[Key]) -> bool:
        """Return whether every key exists, without waiting. A filled queue counts as existing."""
        wanted = {_raw(key) for key in keys}
        if prefixed.overheard([*wanted]):
            return True
        with _torch_errors("check", wanted):
            return len(self._read(wanted, self._deadline(), values=False)) == len(wanted)

    def add(self, key: Key, amount: int) -> int:
        """Add to a decimal number, 0 if the key is missing, and return the sum (64 bits).

        Adds exactly once, even if responses are lost or other nodes write. Two requests without contention. Raises
        ValueError, as HashStore does, if the value is not a number.
        """
        return int(self._change("add", key, lambda old: b"%d" % _wrapped(_number(old or b"") + amount)))

    def compare_set(self, key: Key, expected: Value, desired: Value) -> bytes:
        """Replace `expected` by `desired`, and return the value afterwards: `desired` on success.

        A missing key counts as empty: the key is set if `expected` is empty; otherwise `expected` is returned.
        """
        before, after = _bytes(expected), _bytes(desired)

        def change(old: bytes | None) -> bytes | None:
            return after if (old or b"") == before else None

        return self._change("compare_set", key, change, otherwise=before)

    def append(self, key: Key, value: Value) -> None:
        """Append to an existing value, or set the value."""
        self._change("append", key, lambda old: (old or b"") + _bytes(value))

    def delete_key(self, key: Key) -> bool:
        """Delete a key, and return whether it existed."""
        with _torch_errors("delete_key", [_raw(key)]):
            return self._rows.delete(_raw(key), self._deadline())

    def num_keys(self) -> int:
        """Return the number of keys of the run."""
        with _torch_errors("num_keys", []):
            return self._rows.count(self._deadline())

    def list_keys(self) -> list[str]:
        r"""Return all keys of the run except those of queues. Bytes that are not UTF-8 are shown as \x.."""
        with _torch_errors("list_keys", []):
            return [key.decode(errors="backslashreplace") for key in self._rows.keys(self._deadline())]

    def queue_push(self, key: Key, value: Value) -> None:
        """Append a value to a queue. All values of a queue together must fit into a row."""
        self._change("queue_push", key, lambda old: (old or b"") + _framed(_bytes(value)), rows=self._queues)

    def queue_pop(self, key: Key, block: bool = True) -> bytes:
        """Remove and return the oldest value of a queue; each value is returned once.

        Waits for a value, or raises QueueEmptyError if `block` is false. If a reader dies after taking a value, the
        value is lost.
        """
        deadline, pause = self._deadline(), FIRST_PAUSE
        while True:
            taken: list[bytes] = []

            def pop_first(old: bytes | None, taken: list[bytes] = taken) -> bytes | None:
                taken[:] = _values(old or b"")
                return b"".join(map(_framed, taken[1:])) if taken else None

            self._change("queue_pop", key, pop_first, rows=self._queues)
            if taken:
                return taken[0]
            if not block:
                raise QueueEmptyError("queue is empty")
            if time.monotonic() >= deadline:
                seconds = self.timeout.total_seconds()
                raise DistStoreError(f"queue_pop timeout after {seconds:g} s, run {self.run}: {_shown([_raw(key)])}")
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 (spreads load; no secret)
            pause = min(pause * GROWTH, LONGEST_PAUSE)

    def queue_len(self, key: Key) -> int:
        """Return the number of values in a queue, 0 for a queue that was never used."""
        with _torch_errors("queue_len", [_raw(key)]):
            row = self._queues.get(_raw(key), self._deadline())
        return len(_values(row.value)) if row else 0

    def multi_get(self, keys: Sequence[Key]) -> list[bytes]:
        """Wait for the keys and return their values."""
        wanted = [_raw(key) for key in keys]
        found = self._await("multi_get", wanted, self.timeout)
        return [found[key] for key in wanted]

    def multi_set(self, keys: Sequence[Key], values: Sequence[Value]) -> None:
        """Write several values, one after the other. Raises ValueError for different numbers of keys and values."""
        for key, value in list(zip(keys, values, strict=True)):
            self.set(key, value)

    # The names that PyTorch's C++ side looks up, behind a PrefixStore for example (torch 2.13).
    deleteKey = delete_key
    getNumKeys = num_keys
    listKeys = list_keys
    queuePush, queuePop, queueLen = queue_push, queue_pop, queue_len

    def _deadline(self, timeout: timedelta | None = None) -> float:
        seconds = (self.timeout if timeout is None else timeout).total_seconds()
        return time.monotonic() + (seconds or float("inf"))

    def _await(self, what: str, keys: list[bytes], timeout: timedelta, values: bool = True) -> dict[bytes, bytes]:
        deadline, pause = self._deadline(timeout), FIRST_PAUSE
        found: dict[bytes, bytes] = {}
        missing = set(keys)
        with _torch_errors(what, missing):
            while True:
                found |= self._read(missing, deadline, values)
                missing -= found.keys()
                left = deadline - time.monotonic()
                if not missing or left <= 0:
                    break
                time.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311 (spreads load; no secret)
                pause = min(pause * GROWTH, LONGEST_PAUSE)
        if missing:
            seconds = timeout.total_seconds()
            raise DistStoreError(f"{what} timeout after {seconds:g} s, run {self.run}, missing keys: {_shown(missing)}")
        return found

    def _read(self, keys: Collection[bytes], deadline: float, values: bool) -> dict[bytes, bytes]:
        if len(keys) >= MANY:
            return self._rows.many(keys, deadline, values)
        rows = {key: self._rows.get(key, deadline) for key in keys}
        found = {key: row.value for key, row in rows.items() if row}
        if not values:  # only a check of existence may refer to a queue
            queues = {key: self._queues.get(key, deadline) for key in keys if key not in found}
            found |= {key: b"" for key, row in queues.items() if row and row.value}
        return found

    def _change(
        self,
        what: str,
        key: Key,
        change: Callable[[bytes | None], bytes | None],
        otherwise: bytes = b"",
        rows: Rows | None = None,
    ) -> bytes:
        """Replace a value by the result of `change`, and return the result; if the result is None, keep and return
        the old value (or `otherwise`)."""
        deadline, pause, raw, rows = self._deadline(), FIRST_RETREAT, _raw(key), rows or self._rows
        with _torch_errors(what, [raw]):
            while True:
                row = rows.get(raw, deadline)
                new = change(row.value if row else None)
                if new is None:
                    return row.value if row else otherwise
                try:
                    if row:
                        rows.replace(raw, new, row.version, deadline)
                    else:
                        rows.insert(raw, new, deadline)
                    return new
                except (Conflict, Missing):
                    if time.monotonic() > deadline:
                        raise
                time.sleep(random.uniform(0, pause))  # noqa: S311 (spreads load; no secret)
                pause = min(2 * pause, LONGEST_RETREAT)


prefixed.teach(AzureTableStore)


@contextmanager
def _torch_errors(what: str, keys: Collection[bytes]) -> Iterator[None]:
    """Convert errors of the table to PyTorch's errors."""
    try:
        yield
    except Unreachable as error:
        raise DistNetworkError(f"{what} {_shown(keys)}: {error}") from error
    except TableError as error:
        raise DistStoreError(f"{what} {_shown(keys)}: {error}") from error


def _shown(keys: Collection[bytes]) -> str:
    names = [key.decode(errors="backslashreplace") for key in sorted(keys)]
    more = f" and {len(names) - SHOWN_KEYS} more" if len(names) > SHOWN_KEYS else ""
    return ", ".join(names[:SHOWN_KEYS]) + more


def _raw(key: Key) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _bytes(value: Value) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _framed(value: bytes) -> bytes:
    return len(value).to_bytes(4) + value


def _values(frames: bytes) -> list[bytes]:
    values, at = [], 0
    while at < len(frames):
        end = at + 4 + int.from_bytes(frames[at : at + 4])
        values.append(frames[at + 4 : end])
        at = end
    return values


def _number(value: bytes) -> int:
    """Parse a number as C++ does (std::stoll): the number that the value begins with; an empty value is 0."""
    if not value:
        return 0
    if found := re.match(rb"\s*([+-]?\d+)", value):
        return int(found[1])
    raise ValueError(f"add: the value is {value[:40]!r}, not a number")


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63
