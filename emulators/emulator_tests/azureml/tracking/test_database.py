"""MLflow's database is complete after a kill at any moment. A half-made database of an earlier version is created
again.

The tests import MLflow where they use it, because the import takes seconds: every worker collects this file, and only
one runs it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="a child that dies at a moment of ours is a fork"),
    pytest.mark.filterwarnings("ignore"),
]
KILLED = 9


def store(database: Path) -> Any:
    """Return MLflow's own store, which creates missing tables."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    make: Any = SqlAlchemyStore
    return make(f"sqlite:///{database}", "x:/")


def make_ready(database: Path) -> None:
    from emulators.tracking import database as databases

    databases.make_ready(database)


def newest() -> Any:
    from mlflow.store.db import utils

    revision_of: Any = utils
    return revision_of._get_latest_schema_revision()


def killed(at: int, work: Callable[[], object]) -> bool:
    """Run `work` in a child that is killed at its `at`-th SQL statement. Return whether the kill happened."""
    from sqlalchemy import Engine, event

    child = os.fork()
    if child == 0:
        statements = 0

        def count(*_: Any) -> None:
            nonlocal statements
            statements += 1
            if statements == at:
                os._exit(KILLED)

        event.listen(Engine, "before_cursor_execute", count)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED


def revision(database: Path) -> str:
    with sqlite3.connect(database) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


@pytest.mark.parametrize("at", [1, 40, 120, 200])
def test_a_kill_leaves_nothing_half(tmp_path: Path, at: int) -> None:
    """After a kill at any statement of the first creation, the next start creates the whole database."""
    database = tmp_path / "mlflow.sqlite"
    assert killed(at, lambda: make_ready(database))
    assert not database.exists()
    make_ready(database)
    assert revision(database) == newest()
    store(database).create_experiment("works")


def test_one_that_was_left_half_is_made_anew(tmp_path: Path) -> None:
    """A database that a kill left half-made by MLflow's own method holds no run. MLflow can't start with it, so it
    is replaced."""
    database = tmp_path / "mlflow.sqlite"
    assert killed(120, lambda: store(database))
    assert database.exists()
    make_ready(database)
    assert revision(database) == newest()


def test_what_was_logged_survives_a_killed_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade works on a copy, so after a kill the file is unchanged and has its runs."""
    database = tmp_path / "mlflow.sqlite"
    make_ready(database)
    experiment = store(database).create_experiment("kept")
    before = database.read_bytes()
    monkeypatch.setattr("mlflow.store.db.utils._get_latest_schema_revision", lambda: "a later one")
    monkeypatch.setattr("mlflow.store.db.utils._upgrade_db", lambda _: os._exit(KILLED))
    assert killed(10**9, lambda: make_ready(database))
    assert database.read_bytes() == before
    monkeypatch.undo()
    make_ready(database)
    assert store(database).get_experiment(experiment).name == "kept"
