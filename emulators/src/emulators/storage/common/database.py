"""The SQLite file of a storage service.

Every change is one transaction, and is in the file before the request is answered, so a killed process loses no
acknowledged change. The write-ahead log is not flushed to the disk at every commit (synchronous=NORMAL), so a power cut
may lose the last changes, but the file stays consistent.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_SECONDS = 2.0  # to wait for the end of the last process
CACHE_KIB = 32 * 1024  # pages of the file kept in memory


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """Open or create the file for this process alone. Counters in memory would be wrong if another process changed
    the file.

    Changes outside of `transaction` commit by themselves. Raises RuntimeError if another process has the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256, timeout=LOCK_SECONDS)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.executescript(schema)
    except sqlite3.OperationalError as error:
        connection.close()
        why = "is another process serving it?" if os.access(path.parent, os.W_OK) else "its folder can't be written"
        raise RuntimeError(f"{path} can't be opened; {why} ({error})") from error
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction: all of its changes are committed, or none after an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class Store:
    """Base class of the stores of blobs, queues and tables: a database file, settings, and the deleted owners of
    data."""

    def __init__(self, path: Path, schema: str, clock: Callable[[], float]) -> None:
        self._db = open_database(path, f"{Settings.SCHEMA}{Dropped.SCHEMA}{schema}")
        self.clock = clock
        self.settings = Settings(self._db)
        self._dropped = Dropped(self._db)

    def close(self) -> None:
        self._db.close()


class Settings:
    """The settings of a service, as text by name, stored beside the service's data."""

    SCHEMA = "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT);"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def get(self, name: str) -> str:
        """Return the value, or '' if it was never set."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def put(self, name: str, value: str) -> None:
        self._db.execute("REPLACE INTO settings VALUES (?, ?)", (name, value))

    def drop(self, name: str) -> None:
        self._db.execute("DELETE FROM settings WHERE name = ?", (name,))


class Dropped:
    """The numbers of deleted containers, queues or tables whose content has yet to be removed, step by step."""

    SCHEMA = "CREATE TABLE IF NOT EXISTS dropped (owner INTEGER PRIMARY KEY);"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def add(self, owner: int) -> None:
        """Record a deleted owner. Must run in a transaction."""
        self._db.execute("INSERT INTO dropped VALUES (?)", (owner,))

    def purge(self, remove: Callable[[int], int]) -> bool:
        """Remove some content of one deleted owner. `remove` returns the number of removed rows. Returns whether
        there may be more."""
        row = self._db.execute("SELECT rowid FROM dropped LIMIT 1").fetchone()  # for any name of the column
        if row is None:
            return False
        if not remove(row[0]):
            self._db.execute("DELETE FROM dropped WHERE rowid = ?", row)
        return True
