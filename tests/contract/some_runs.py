"""Runs for the tests of stores of runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.runs.model import Run
from shared.runs.ports import RunFilter, Runs

HOUR = "20260102T03"
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def run(name: str = "mnist-0", seconds: float = 0.0, **fields: Any) -> Run:
    created_at = NOW + timedelta(seconds=seconds)
    return Run.of(
        name=name,
        drop=f"mnist/{name}",
        route="mnist",
        fingerprint="f" * 64,
        experiment="digits",
        cluster="cpu-cluster",
        nodes=2,
        created_at=created_at,
        **fields,
    )


def pages(runs: Runs, run_filter: RunFilter, limit: int) -> list[list[Run]]:
    """All pages, followed by their tokens."""
    found, token = [], ""
    while True:
        page = runs.page(run_filter, limit, token)
        assert len(page.runs) <= limit
        found.append(page.runs)
        if not (token := page.token):
            return found
