"""Compatibility of run rows with the previous version, in both directions.

The previous version's own `to_row` wrote rows_of_the_version_before.json.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.tables import run_index as index
from shared.adapters.tables.records import changed_columns, to_row
from shared.adapters.tables.run_table import _read
from shared.deadlines.feature import DATE
from shared.deadlines.model import Date
from shared.deadlines.plan import NodeChoice
from shared.elastic.model import elastic_of
from shared.kernel.parts import one_columns
from shared.pipelines.model import StepState
from shared.runs.codes import CancelCode
from shared.runs.model import Archiving, Cancel, CheckedData, Cost, Measured, Money, Moves, Placed, Removed, Run
from shared.sweeps.model import SweepSummary, TrialOf
from tests.contract.some_runs import NOW
from tests.fakes.parts import changed

ROWS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("rows_of_the_version_before.json").read_text())
OLD = {name for each in one_columns(Run) for name in each.fields}  # now one column per group
EMPTY = ("", 0, 0.0, False, "[]", "{}", [0, "Edm.Int64"])


def read(name: str) -> Run:
    return _read({column: cell[0] if isinstance(cell, list) else cell for column, cell in ROWS[name].items()})


def test_a_date_of_before_is_read() -> None:
    """The old columns of a run with a deadline become its part, and its dedicated members know their cluster."""
    run = read("mnist-dated")
    date = run.feature(Date)
    assert date
    assert (date.due.done_by, date.due.low_clusters) == (NOW + timedelta(hours=6), ("cpu-cluster", "other-region"))
    assert (date.pace.holds, date.pace.done_at, date.change_seconds) == (
        NodeChoice.BOTH,
        NOW + timedelta(hours=5),
        244.1,
    )
    assert (run.on_cluster, run.money.allowed, run.is_steered) == ("cpu-cluster", 10.0, True)
    assert [member.cluster for member in elastic_of(run).members] == ["", "other-region", "sure"]


def test_where_the_jobs_of_before_were_is_read() -> None:
    """An old run of one job keeps its last place and its target cluster."""
    run = read("mnist-moved")
    assert (run.on_cluster, run.moves.to) == ("sure", "cpu-cluster")


def test_a_sweep_and_its_trial_of_before_are_read() -> None:
    """An old sweep's columns become its part, and a trial names its sweep."""
    standing = read("mnist-sweep").feature(SweepSummary)
    assert standing == SweepSummary(7, 5, "mnist-sweep-t3", 0.91, 1.25, 0.25, "Its budget is spent.", 12)
    assert read("mnist-sweep-t3").features == {TrialOf: TrialOf("mnist-sweep")}


def test_the_steps_of_before_are_read() -> None:
    """An old pipeline's column of steps becomes its part."""
    (part,) = read("mnist-pipe").features.values()
    assert [(step.name, step.state, step.job) for step in part.steps] == [
        ("prepare", StepState.COMPLETED, "job-1"),
        ("train", StepState.RUNNING, "job-2"),
    ]


def test_the_groups_of_columns_of_before_are_read() -> None:
    """Several old columns become one value each: the check of the data, the moves, money, the attempts to archive,
    the measurements, the cancel and the removal."""
    run = read("mnist-whole")
    assert run.data == CheckedData("other", "Drop mnist/a held other data.")
    places = (Placed(NOW, "cpu-cluster"), Placed(NOW + timedelta(minutes=9), "sure"))
    assert run.moves == Moves(places, "cpu-cluster", "It is cheaper there.")
    cost = Cost(2.5, 0.25, 0.125, 600.0, NOW + timedelta(hours=1), True)
    assert run.money == Money("vision", 1.5, "of cpu-cluster", 3.0, 9.0, 6.0, cost)
    assert run.archiving == Archiving(3, "the container can't be written", NOW + timedelta(hours=8))
    last, best, saved = ({"test_accuracy": value} for value in (0.8, 0.9, 0.85))
    goals, steps = {"test_accuracy": "maximize"}, {"test_accuracy": 40.0}
    assert run.measured == Measured(last, best, steps, saved, 30, goals, "2 of Tesla T4")
    assert run.cancel == Cancel(NOW + timedelta(minutes=20), "Too slow.", CancelCode.PERSON, "ann", "0000-1")
    assert run.removed == Removed(NOW + timedelta(days=2), "bob", "0000-2", ("checkpoints",))
    assert {each.field for each in one_columns(Run)} == {
        *("data", "moves", "money", "archiving", "measured", "cancel", "removed")
    }


def test_a_run_without_features_has_none() -> None:
    """Empty old columns add no part to a run."""
    assert read("mnist-plain").features == {}


@pytest.mark.parametrize("name", ROWS)
def test_the_version_before_finds_its_columns(name: str) -> None:
    """This version writes every cell of a feature that the old row of the same run has."""
    row = {column: list(cell) if isinstance(cell, tuple) else cell for column, cell in _row(read(name)).items()}
    columns = {"kind"}.union(OLD, *(part.old_columns() for part in index.PARTS))
    said = {column: cell for column, cell in ROWS[name].items() if column in columns and cell not in EMPTY}
    assert {column: row.get(column) for column in said} == said


def test_a_look_of_the_version_before_counts() -> None:
    """If a row has both the old and the new columns, the old columns win, because the previous version may have
    written last."""
    row = _row(read("mnist-dated")) | {"done_share": 0.75, "holds": "low_priority"}
    date = _read({column: cell[0] if isinstance(cell, tuple) else cell for column, cell in row.items()}).feature(Date)
    assert date
    assert (date.pace.done_share, date.pace.holds) == (0.75, NodeChoice.LOW)


def test_a_write_of_the_version_before_counts() -> None:
    """The previous version writes only its own columns, which win over a different value in the new column."""
    row = _row(read("mnist-whole")) | {"project": "speech", "cleared": '["copies"]', "archive_error": ""}
    run = _read({column: cell[0] if isinstance(cell, tuple) else cell for column, cell in row.items()})
    assert (run.money.project, run.removed.cleared, run.archiving.error) == ("speech", ("copies",), "")


@pytest.mark.parametrize("name", ROWS)
def test_a_part_is_read_from_its_column_alone(name: str) -> None:
    """Without the old columns, the part is read from its own column."""
    run = read(name)
    old = OLD.union(*(part.old_columns() for part in index.PARTS))
    row = {column: cell for column, cell in _row(run).items() if re.sub(r"_\d+$", "", column) not in old}
    assert _read({column: cell[0] if isinstance(cell, tuple) else cell for column, cell in row.items()}) == run


def test_only_the_part_that_changed_is_written() -> None:
    """A step of a run with a deadline writes no column of the deadline, and a check of the deadline writes no
    column of the run."""
    run = read("mnist-dated")
    date = run.feature(Date)
    assert date
    assert changed_columns(run, changed(run, reason="x"), index.PARTS) == {"reason": "x"}
    assert set(changed_columns(run, changed(run, project="vision"), index.PARTS)) == {"project", "money"}
    looked = changed_columns(run, run.having(Date(date.due)), index.PARTS)
    assert set(looked) == {"date", *DATE.old_columns()}


def _row(run: Run) -> dict[str, Any]:
    return to_row(run, parts=index.PARTS)
