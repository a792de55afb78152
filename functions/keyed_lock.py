"""A per-key lock within the process: no handler reads a record that another handler is about to write."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class KeyedLock:
    """One lock per name, while a thread holds or awaits the lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._users = Counter[str]()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        with self._lock:
            mine = self._locks.setdefault(name, threading.Lock())
            self._users[name] += 1
        try:
            with mine:
                yield
        finally:
            with self._lock:
                self._users[name] -= 1
                if not self._users[name]:
                    del self._users[name], self._locks[name]
