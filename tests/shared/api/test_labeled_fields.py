"""Fields of a run that are declared with a label appear in answers and on the command line without more code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from cli.show import runs as show
from shared.adapters.tables.run_index import SELECTED
from shared.api import records, rows
from shared.api.rows import RowsQuery
from shared.runs.ports import RunFields
from tests.contract.some_runs import run
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder


def test_a_labeled_field_is_shown_under_its_label() -> None:
    """The answer has the value as text, and `show` prints the label and the value."""
    answer = records.run(changed(run(), hardware="2 of Tesla T4"))
    assert answer["labeled"] == {"Trained with": "2 of Tesla T4"}
    text = printed(show.one(answer))
    assert "trained with" in text
    assert "2 of Tesla T4" in text


def test_an_empty_labeled_field_is_not_shown() -> None:
    """An unknown value is not shown."""
    assert records.run(run())["labeled"] == {}


def test_a_listed_field_has_a_column_in_lists(tmp_path: Path) -> None:
    """The API's rows have the field's value, read from the brief columns, and `runs` prints a column for it."""
    of_vision, of_nobody = changed(run("a"), project="vision"), run("b")
    world = World(trainers_folder(tmp_path))
    for each in (of_vision, of_nobody):
        world.runs.insert(each)
    page = rows.rows(world.system.runs, world.system.clock, RowsQuery())
    listed: dict[str, Any] = {row["run"]: row["listed"] for row in page["rows"]}
    assert listed == {"a": {"Project": "vision"}, "b": {}}
    assert "project" in SELECTED[RunFields.ROW]
    text = printed(show.many([records.run(of_vision), records.run(of_nobody)], ""))
    assert "project" in text
    assert "vision" in text


def test_a_list_has_no_column_for_a_field_that_no_run_has() -> None:
    """When no run has a project, `runs` prints no column for it."""
    assert "project" not in printed(show.many([records.run(run())], ""))


def printed(content: RenderableType) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(content)
    return capture.get()
