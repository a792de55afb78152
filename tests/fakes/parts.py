"""Runs by their columns, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.kernel.parts import in_parts
from shared.runs.model import Run


def changed(run: Run, **columns: Any) -> Run:
    """Return the run with these columns changed."""
    grouped = in_parts(Run, columns)
    own = grouped.pop("", {})
    return replace(run, **own, **{name: replace(getattr(run, name), **its) for name, its in grouped.items()})
