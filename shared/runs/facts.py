"""What happens to runs."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.facts import Fact
from shared.runs.model import Run


@dataclass(frozen=True)
class RunRecorded(Fact):
    """The run has a row; its job is not at Azure ML yet."""

    run: Run


@dataclass(frozen=True)
class RunSubmitted(Fact):
    """Azure ML has the run's job. Stated before the row says so: a repeat is the same event; a fact that is lost is
    not stated again."""

    run: Run


@dataclass(frozen=True)
class RunStarted(Fact):
    """The row says that the run has nodes, for the first time or again."""

    run: Run


@dataclass(frozen=True)
class RunTakesStep(Fact):
    """The row is about to say so of the run; these jobs of it were just seen on nodes, or off them. `archives`: time is
    left for a small archive."""

    run: Run
    moved: frozenset[str]
    archives: bool


@dataclass(frozen=True)
class RunLosesNodes(Fact):
    """The run has lost its nodes `after` times, `before` until now. Stated before the row says so."""

    run: Run
    before: int
    after: int


@dataclass(frozen=True)
class CancelCarriedOut(Fact):
    """The run's jobs are asked to end, because someone asked the run to."""

    run: Run


@dataclass(frozen=True)
class RunReconciled(Fact):
    """The look at the run's hour has come to the run, which is not over."""

    run: Run


@dataclass(frozen=True)
class RunEnded(Fact):
    """The row says that the run is completed, failed or canceled."""

    run: Run


@dataclass(frozen=True)
class RunBeingArchived(Fact):
    """The row and the manifest are about to say what the run left."""

    run: Run


@dataclass(frozen=True)
class RunArchived(Fact):
    """The manifest of the run's archive is written. Stated before the row says so, by `seconds` at most."""

    run: Run
    output: str
    seconds: float = 0.0


@dataclass(frozen=True)
class ArchiveGivenUp(Fact):
    """The run's archive failed too often, and is not tried again."""

    run: Run
