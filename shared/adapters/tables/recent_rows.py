"""Recently read or written rows of this process, with their etags."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from shared.adapters.tables.records import Row

SECONDS = 10.0
_MOST = 1000  # rows of some KiB each

Known = tuple[Row, str]  # the row and its etag


class RecentRows:
    """Caches rows for SECONDS, and at most _MOST of them; the oldest are evicted first. Safe to share between
    threads.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rows: dict[str, tuple[float, Known]] = {}  # oldest first
        self._lock = threading.Lock()

    def keep(self, name: str, row: Row, etag: str) -> None:
        now = self._clock()
        with self._lock:
            self._rows.pop(name, None)
            self._rows[name] = (now, (_as_it_is_read(row), etag))
            while (oldest := next(iter(self._rows))) != name and (
                len(self._rows) > _MOST or now - self._rows[oldest][0] > SECONDS
            ):
                del self._rows[oldest]

    def get(self, name: str) -> Known | None:
        with self._lock:
            at, entry = self._rows.get(name, (0.0, None))
        return entry if entry and self._clock() - at <= SECONDS else None

    def merge(self, name: str, before: str, cells: Row, etag: str) -> None:
        """Record these cells as written over the row with the etag `before`. A cached row with another etag is
        evicted.
        """
        entry = self.get(name)
        if entry is not None and entry[1] == before:
            self.keep(name, entry[0] | cells, etag)
            return
        with self._lock:
            self._rows.pop(name, None)


def _as_it_is_read(row: Row) -> Row:
    """Return the row as a read returns it: numbers are written with their type, and read without."""
    return {name: cell[0] if isinstance(cell, tuple) else cell for name, cell in row.items()}
