"""MLflow's database, created and migrated beside its final place and then moved there as a whole.

MLflow migrates in steps that SQLite can't undo together. If MLflow is killed between two steps, it later finds tables
that it wants to create, and never starts again. So no step runs on the final file.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from pathlib import Path

from mlflow.store.db import utils

log = logging.getLogger(__name__)


def make_ready(database: Path) -> None:
    """Create the database, or migrate it to the installed MLflow's version. A kill at any moment leaves the old
    file unchanged."""
    revision = _revision(database)
    if revision == utils._get_latest_schema_revision():
        return
    beside = database.with_name(f"{database.name}.new")
    if revision:
        try:
            _copy(database, beside)
            _migrate(beside, new=False)
        except Exception:  # after any error the file is not usable
            if _holds_something(database):
                raise
            log.warning("%s was cut off in its first migration, before anything was logged; it is made anew", database)
            revision = None
    if not revision:
        _remove(beside)
        _migrate(beside, new=True)
    beside.replace(database)


def _migrate(database: Path, *, new: bool) -> None:
    engine = utils.create_sqlalchemy_engine_with_retry(f"sqlite:///{database.resolve()}")
    try:
        (utils._initialize_tables if new else utils._upgrade_db)(engine)
    finally:
        engine.dispose()


def _revision(database: Path) -> str | None:
    """Return the version of the database's tables; None if the file does not exist, or has no version yet."""
    if not database.exists():
        return None
    with contextlib.closing(sqlite3.connect(database)) as connection:
        try:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:
            return None
    return str(found[0]) if found else None


def _holds_something(database: Path) -> bool:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        try:
            found = connection.execute("SELECT 1 FROM runs UNION SELECT 1 FROM experiments WHERE experiment_id > 0")
            return found.fetchone() is not None
        except sqlite3.OperationalError:
            return False


def _copy(database: Path, beside: Path) -> None:
    """Copy the committed content of the database, including what a kill left in the journal."""
    _remove(beside)
    with contextlib.closing(sqlite3.connect(database)) as source, contextlib.closing(sqlite3.connect(beside)) as target:
        source.backup(target)


def _remove(database: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
