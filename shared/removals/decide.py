"""Decide the deletions of a route's retention, and their times. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.drops.model import Drop, DropState
from shared.jobs.route import Retention
from shared.removals.model import RemovalKind
from shared.runs.decide import is_over
from shared.runs.model import Run, RunState

TOLD_BEFORE = timedelta(days=7)  # the plan shows what will be deleted within this time


@dataclass(frozen=True)
class PlannedRemoval:
    """A coming removal: the object, the earliest time, and the reason."""

    what: RemovalKind
    name: str
    at: datetime
    why: str


def of_run(run: Run, rules: Retention) -> Iterator[PlannedRemoval]:
    """Yield the future deletions from an archived run. The last run of a chain decides about shared checkpoints."""
    if run.archive.at is None or run.removed.at is not None or run.archiving.gave_up_at is not None:
        return
    kinds = (
        (RemovalKind.CHECKPOINTS, rules.checkpoints, run.progress.state is RunState.COMPLETED),
        (RemovalKind.COPIES, rules.copies, True),
    )
    for what, days, may_go in kinds:
        if days and may_go and str(what) not in run.removed.cleared:
            at = run.archive.at + timedelta(days=days)
            yield PlannedRemoval(
                what, run.name, at, f"{what} of an archived run are kept for {days:g} days on route {run.asked.route}."
            )


def of_drop(drop: Drop, rules: Retention) -> PlannedRemoval | None:
    """Return the time of the drop's deletion, unless a run keeps the data (`keeps_data`)."""
    if not rules.drops or drop.state is not DropState.SEALED or drop.sealed_at is None:
        return None
    at = drop.sealed_at + timedelta(days=rules.drops)
    return PlannedRemoval(
        RemovalKind.DROP, str(drop.key), at, f"Drops of route {drop.key.route} are kept for {rules.drops:g} days."
    )


def keeps_data(run: Run) -> bool:
    """Return whether this run's data must stay: the run has not ended, or its model is kept."""
    return not is_over(run) or (run.progress.state is RunState.COMPLETED and run.removed.at is None)
