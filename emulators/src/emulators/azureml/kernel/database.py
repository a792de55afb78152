"""The SQLite files of the emulator."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def opened(path: Path, schema: str) -> sqlite3.Connection:
    """Open the database. A missing file, folder or table is created.

    A kill of the process loses at most the last writes, and leaves no partial write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.executescript(schema)
    return database
