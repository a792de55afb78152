"""Runs by their columns, and what features added to them, for tests."""

from __future__ import annotations

from typing import Any

from shared.kernel.parts import with_columns
from shared.runs.model import Run
from shared.sweeps.model import SweepSummary, TrialOf


def changed(run: Run, **columns: Any) -> Run:
    """The run with these columns changed."""
    return with_columns(run, columns)


def sweep_of(run: Run) -> str:
    """The sweep whose trial the run is; '' for another run."""
    trial = run.feature(TrialOf)
    return trial.sweep if trial else ""


def standing_of(sweep: Run) -> SweepSummary:
    standing = sweep.feature(SweepSummary)
    assert standing is not None
    return standing
