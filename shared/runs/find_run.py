"""Find a run that may not exist."""

from __future__ import annotations

from shared.kernel.errors import NotFound
from shared.runs.model import Run
from shared.runs.ports import Runs


def find_run(runs: Runs, name: str) -> Run | None:
    """The newest row of this run; None for an unknown name, and without a request for ''."""
    try:
        return runs.get(name).value if name else None
    except NotFound:
        return None
