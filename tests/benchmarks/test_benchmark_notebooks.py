"""`bench notebooks`: which notebooks run, how their cells run, and what became of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks._notebook_cells import code_cells, run_cell
from benchmarks.notebooks import Outcome, figures, notebooks, outcome

MINE = "from azure.ai.ml import MLClient"


def notebook(*sources: str) -> str:
    cells = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["MLClient"]}, *cells]})


def test_notebooks_that_create_a_client_are_chosen(tmp_path: Path) -> None:
    for name, text in {"b.ipynb": notebook(MINE), "a.ipynb": notebook("1"), "c.ipynb": "{", "d.py": MINE}.items():
        (tmp_path / name).write_text(text)
    assert [file.name for file in notebooks(tmp_path)] == ["b.ipynb"]


def test_cells_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`%%writefile` writes its file; other magics and shell commands do nothing; annotations are values."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = ("folder = '.'", "%%writefile {folder}/a.txt\none\n", "", "%pip install x\n!ls\ndef f(x: int): ...\n")
    for source in code_cells(notebook(*cells)):
        run_cell(source, names)
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert names["f"].__annotations__ == {"x": int}


@pytest.mark.parametrize(
    ("cell", "error", "jobs", "state", "whose"),
    [
        (None, "", {"j": ["Completed", ""]}, "completed", ""),
        (2, "ModuleNotFoundError: No module named 'x'", {}, "failed", "the notebook"),
        (2, "HttpResponseError: not in this stand-in", {}, "failed", "this machine"),
        (3, "JobException: it failed", {"j": ["Failed", "no NCCL"]}, "failed", "this machine"),
        (None, "", {"j": ["unfinished", "It had not ended in time."]}, "unfinished", "this machine"),
        (1, "AttributeError: idle", {"j": ["", ""]}, "failed", "Trainyard"),
    ],
)
def test_the_first_thing_that_went_wrong_counts(
    cell: int | None, error: str, jobs: dict[str, list[str]], state: str, whose: str
) -> None:
    found = outcome("a.ipynb", {"cells": 3, "cell": cell, "error": error, "jobs": jobs})
    assert (found.state, found.whose) == (state, whose)


def test_the_figures_count_by_the_part_responsible() -> None:
    counted = figures([Outcome("a", "completed"), Outcome("b", "failed", "x", "Trainyard")])
    assert counted == {"notebooks": 2, "completed": 1, "others": {"Trainyard": 1}}
