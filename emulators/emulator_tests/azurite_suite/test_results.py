"""The report of Azurite's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator_tests.azurite_suite.__main__ import files, main, outcomes
from emulator_tests.azurite_suite.results import FileResult, table


def test_files_that_start_a_server(tmp_path: Path) -> None:
    """Files that start no server are tests of Azurite's own code, and are not run."""
    for name, text in (("queue/a.test.ts", "new QueueTestServerFactory()"), ("queue/unit/b.test.ts", "parse()")):
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text(text)
    assert [path.name for path in files(tmp_path, [])] == ["a.test.ts"]
    assert files(tmp_path, ["blob"]) == []


def test_each_test_has_an_outcome() -> None:
    """A pass, a test that Azurite skips, and a failure with its error are told apart."""
    report = {
        "passes": [{"fullTitle": "A one"}],
        "pending": [{"fullTitle": "A two"}],
        "failures": [{"fullTitle": "A three", "err": {"message": "404\nmore"}}],
    }
    found = FileResult("queue/a.test.ts", outcomes(report))
    silent = FileResult("queue/b.test.ts", {"(the whole file)": "no report: killed"})
    lines = table([found, silent]).splitlines()
    assert lines[:3] == ["   1 of   2  queue/a.test.ts", "   0 of   1  queue/b.test.ts", "   1 of   3  all of queue"]
    assert lines[4:] == [
        "queue/a.test.ts: A three", "    404", "queue/b.test.ts: (the whole file)", "    no report: killed"
    ]  # fmt: skip


def test_tests_of_the_same_title_all_count() -> None:
    """Azurite's queueSas.test.ts has two tests of one title."""
    report = {
        "passes": [{"fullTitle": "A"}, {"fullTitle": "A"}],
        "pending": [],
        "failures": [{"fullTitle": "A", "err": {}}],
    }
    assert outcomes(report) == {"A": "", "A (again, 1)": "", "A (again, 2)": "failed"}


def test_a_folder_without_mocha(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error has the command to run."""
    with pytest.raises(SystemExit):
        main(["--azurite", str(tmp_path)])
    assert "run `npm ci` there" in capsys.readouterr().err
