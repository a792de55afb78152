"""The list of Azurite's tests that do not pass, and its table in the README."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from emulator_tests.azurite_suite.listed import LIST, REASONS, Listed, listed, main, surprises
from emulator_tests.azurite_suite.results import FileResult
from emulator_tests.azurite_suite.table import README, table, written

BLOB = Listed("blob/a.test.ts", 4, 4, {"azure": {"as Azure": ["one"]}, "suite": {}, "missing": {"a lake": ["two"]}})


def test_each_test_that_does_not_pass_is_listed_once_with_one_of_the_reasons() -> None:
    """A file has no more listed tests than tests."""
    for one in yaml.safe_load(LIST.read_text("utf-8")).values():
        assert {*one} - {"tests", "azurite"} <= {*REASONS}
    for file in listed():
        assert len(file.titles) == len({*file.titles}) <= file.tests, file.file
        assert file.azurite <= file.tests, file.file


def test_the_readme_has_the_table_of_the_list() -> None:
    """`python -m emulator_tests.azurite_suite.table` updates the table."""
    text = README.read_text("utf-8")
    assert written(text) == text


def test_the_row_of_a_service_leaves_out_what_azurite_does_otherwise_than_azure() -> None:
    """Each file has its own row, which counts all tests."""
    lines = table([BLOB]).splitlines()
    assert lines[2] == "| blob/a | 2 of 4 | 4 |"
    assert lines[3].endswith("| 2 of 3, 66% | 4 |")
    assert lines[-3:] == ["The emulator has none of these:", "", "- a lake (1)"]


def test_differences_between_a_run_and_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """New failures, listed tests that pass, other numbers of tests, and new files are told."""
    run = FileResult("blob/a.test.ts", {"one": "error", "two": "", "three": "error", "four": "skipped"})
    assert list(surprises([run, FileResult("blob/b.test.ts", {})], [BLOB])) == [
        "blob/a.test.ts: 3 tests ran, and listed.yaml counts 4",
        "blob/a.test.ts: fails, but is not listed: three",
        "blob/a.test.ts: passes, but is listed: two",
        "blob/b.test.ts: listed.yaml lacks the file",
    ]
    same = tmp_path / "run.json"
    same.write_text(json.dumps({}))
    assert main([str(same)]) == 0
    assert "as listed.yaml says" in capsys.readouterr().out
