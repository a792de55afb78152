"""Facts about runs: the events to which features and the rest of the system react."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact
from shared.runs.model import Run


@dataclass(frozen=True)
class RunRecorded(Fact):
    """The run has a row, but no job at Azure ML yet."""

    run: Run


@dataclass(frozen=True)
class RunSubmitted(Fact):
    """Azure ML has the run's job. Published before the row records it.

    A repeat publishes the same event. A lost fact would never be published again, hence the order.
    """

    run: Run


@dataclass(frozen=True)
class RunStarted(Fact):
    """The row records that the run has nodes, for the first time or again."""

    run: Run


@dataclass(frozen=True)
class RunAdvances(Fact):
    """The run's row is about to record a step. `moved`: the jobs that just got or lost nodes.

    `archives`: the caller has time to archive a small run.
    """

    run: Run
    moved: frozenset[str]
    archives: bool


@dataclass(frozen=True)
class RunLosesNodes(Fact):
    """The run has now lost its nodes `after` times, previously `before` times. Published before the row records it."""

    run: Run
    before: int
    after: int


@dataclass(frozen=True)
class CancelCarriedOut(Fact):
    """The run's jobs have been canceled, because someone canceled the run."""

    run: Run


@dataclass(frozen=True)
class RunReconciled(Fact):
    """The hourly reconcile reached this run, which has not ended."""

    run: Run


@dataclass(frozen=True)
class RunEnded(Fact):
    """The row records that the run is completed, failed or canceled."""

    run: Run


@dataclass(frozen=True)
class RunBeingArchived(Fact):
    """The row and the manifest are about to record the run's results."""

    run: Run


@dataclass(frozen=True)
class RunArchived(Fact):
    """The manifest of the run's archive is written. Published before the row records it.

    `seconds` is the longest time until the row records it.
    """

    run: Run
    output: str
    seconds: float = 0.0


@dataclass(frozen=True)
class ArchiveGivenUp(Fact):
    """The run's archive failed too often and is not retried."""

    run: Run
