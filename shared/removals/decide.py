"""What a route's retention deletes, and when. Decisions without I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.drops.model import Drop, DropState
from shared.jobs.route import Retention
from shared.removals.model import What
from shared.runs.decide import is_over
from shared.runs.model import Run, RunState

TOLD_BEFORE = timedelta(days=7)  # the plan shows what goes within that time


@dataclass(frozen=True)
class Going:
    """What will be deleted, when at the earliest, and why."""

    what: What
    name: str
    at: datetime
    why: str


def of_run(run: Run, rules: Retention) -> Iterator[Going]:
    """What of an archived run will be deleted. Checkpoints shared with a later run are decided by the last one."""
    if run.archive.at is None or run.removed.at is not None or run.archive.gave_up_at is not None:
        return
    kinds = (
        (What.CHECKPOINTS, rules.checkpoints, run.progress.state is RunState.COMPLETED),
        (What.COPIES, rules.copies, True),
    )
    for what, days, may_go in kinds:
        if days and may_go and str(what) not in run.removed.cleared:
            at = run.archive.at + timedelta(days=days)
            yield Going(
                what, run.name, at, f"{what} of an archived run are kept for {days:g} days on route {run.asked.route}."
            )


def of_drop(drop: Drop, rules: Retention) -> Going | None:
    """When the drop will be deleted, unless a run keeps it (`keeps_data`)."""
    if not rules.drops or drop.state is not DropState.SEALED or drop.sealed_at is None:
        return None
    at = drop.sealed_at + timedelta(days=rules.drops)
    return Going(What.DROP, str(drop.key), at, f"Drops of route {drop.key.route} are kept for {rules.drops:g} days.")


def keeps_data(run: Run) -> bool:
    """Whether the data of this run must stay: it has not ended, or its model is kept."""
    return not is_over(run) or (run.progress.state is RunState.COMPLETED and run.removed.at is None)
