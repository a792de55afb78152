"""Runs by their columns, for tests."""

from __future__ import annotations

from typing import Any

from shared.kernel.parts import with_columns
from shared.runs.model import Run


def changed(run: Run, **columns: Any) -> Run:
    """The run with these columns changed."""
    return with_columns(run, columns)
