"""The trials of a sweep: drawn values, and reported metric values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shared.jobs.search import Drawn
from shared.kernel.parts import column


class TrialState(StrEnum):
    RUNNING = "running"  # or being submitted
    COMPLETED = "completed"
    STOPPED = "stopped"  # by the sweep, because the trial lost
    FAILED = "failed"  # or was canceled


@dataclass(frozen=True)
class Trial:
    """One trial.

    `drawn` are the values as drawn, before rounding; `told` are the first reported values of the metric, in order.

    After the end of the trial, `value` is its best value and `dollars` the cost of its nodes; both are None before. A
    trial that is not the sweep's `own` was added to the study by someone who trains it elsewhere: the sweep only learns
    from it.
    """

    number: int
    drawn: Mapping[str, Drawn]
    state: TrialState = TrialState.RUNNING
    told: Sequence[float] = ()
    dollars: float | None = None
    own: bool = True
    value: float | None = None

    @property
    def is_live(self) -> bool:
        """Whether the trial has an unfinished run, or will get a run."""
        return self.own and self.state is TrialState.RUNNING

    def best(self, maximize: bool, interval: int | None = None) -> float | None:
        """The best reported value, up to an interval; None without reported values."""
        if interval is None and self.value is not None:
            return self.value
        values = self.told if interval is None else self.told[:interval]
        return (max(values) if maximize else min(values)) if values else None


@dataclass(frozen=True)
class SweepSummary:
    """The summary of a sweep's trials.

    The checks of the sweep write it; the study and the trials' runs have the details.
    """

    begun: int = column("trials", 0)
    ended: int = column("trials_ended", 0)
    best: str = column("best_trial", "")  # the run of the best completed trial
    best_value: float | None = None  # the best trial's value of the sweep's metric
    dollars: float = column("trials_dollars", 0.0)  # cost of the trials' nodes so far
    beyond: float = column("trials_beyond", 0.0)  # part of it that the books charged trials after their end
    closing: str = column("sweep_closing", "")  # why no more trials start
    look: int = column("sweep_look", 0)  # the number of the next check by the clock
    early_values: str = ""  # under asha, how far early values could be trusted
    most: int | None = column("most_trials", None)  # trials that it will begin; None in rows of the previous version


@dataclass(frozen=True)
class TrialOf:
    """Marks the run as a trial of this sweep."""

    sweep: str = ""


def trial_run(sweep: str, number: int) -> str:
    """The name of the trial's run."""
    return f"{sweep}-t{number}"
