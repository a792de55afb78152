"""The shared store of a round's agents. The store does not wait for gone agents."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from torch.distributed import DistStoreError, Store

from .store import AzureTableStore

# Seconds between two checks whether the team is still whole; a check costs no request.
LOOK_SECONDS = 0.5
ROLE, RANKS = re.compile(r"torchelastic/role_info/(\d+)"), re.compile(r"torchelastic/assigned_ranks/(\d+)")


class RoundStore(Store):
    """The part of an AzureTableStore for one round. A wait ends with DistStoreError once `broken` returns a reason.

    torchrun's agents exchange their numbers of workers through this store before they first check for changes, and an
    error in this exchange ends an agent (torch 2.9 to 2.14). So in a broken round the store answers in place of the
    gone nodes, with values that let the agent start its workers. With its next check, a tenth of a second later, the
    agent restarts them in the next round.
    """

    def __init__(self, store: AzureTableStore, prefix: str, broken: Callable[[], Sequence[object]]) -> None:
        super().__init__()
        self.timeout: timedelta  # of Store; torch's stubs lack it
        self._inner, self._prefix, self._broken = store.clone(), prefix, broken
        self._role = b""
        self.set_timeout(timedelta(seconds=300))

    def _key(self, key: str | bytes) -> str:
        return f"{self._prefix}/{key.decode() if isinstance(key, bytes) else key}"

    def set(self, key: str, value: str | bytes) -> None:
        if ROLE.fullmatch(key):
            self._role = value.encode() if isinstance(value, str) else bytes(value)
        self._inner.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        try:
            self.wait(keys)
        except DistStoreError:
            if self._broken() and all(ROLE.fullmatch(key) or RANKS.fullmatch(key) for key in keys):
                return [self._stand_in(key) for key in keys]
            raise
        return self._inner.multi_get([self._key(key) for key in keys])

    def _stand_in(self, key: str) -> bytes:
        if found := RANKS.fullmatch(key):
            rank = int(found[1])
            return json.dumps([rank, rank + 1, rank, rank + 1]).encode()
        return self._role

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        seconds = (self.timeout if timeout is None else timeout).total_seconds()
        deadline = time.monotonic() + (seconds or float("inf"))
        names = [self._key(key) for key in keys]
        while True:
            try:
                left = deadline - time.monotonic()
                return self._inner.wait(names, timedelta(seconds=max(0.001, min(left, LOOK_SECONDS))))
            except DistStoreError as error:
                if why := self._broken():
                    raise DistStoreError(f"the round is broken: {why[0]}; {error}") from error
                if time.monotonic() > deadline:
                    raise

    def check(self, keys: Sequence[str]) -> bool:
        return self._inner.check([self._key(key) for key in keys])

    def add(self, key: str, amount: int) -> int:
        return self._inner.add(self._key(key), amount)

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        return self._inner.compare_set(self._key(key), expected, desired)

    def append(self, key: str, value: str) -> None:
        self._inner.append(self._key(key), value)

    def delete_key(self, key: str) -> bool:
        return self._inner.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self._inner.num_keys()

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        for key, value in list(zip(keys, values, strict=True)):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        return True
