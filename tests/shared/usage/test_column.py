"""Rows of lists show how busy a run's nodes were."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shared.api.rows import RowsQuery, rows
from shared.runs.model import Run
from shared.usage.model import UsageSummary
from tests.fakes.ports import Clock, FakeRuns

NOW = datetime(2026, 11, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("summary", "used"),
    [
        (UsageSummary(1, cpu=12.0, gpu=55.0), 55.0),
        (UsageSummary(1, cpu=12.0), 12.0),
        (UsageSummary(1), None),
        (None, None),
    ],
)
def test_a_row_has_the_use_of_the_gpus_or_else_of_the_processors(
    summary: UsageSummary | None, used: float | None
) -> None:
    """The value is null for a run that was not measured. A page of rows reads only this part's column."""
    runs, made = FakeRuns(), Run.of(name="mnist-0", created_at=NOW, drop="", route="", fingerprint="", experiment="e",
                                    cluster="c", nodes=1)  # fmt: skip
    runs.insert(made.having(summary) if summary else made)
    (row,) = rows(runs, Clock(), RowsQuery())["rows"]
    assert row["used"] == used
