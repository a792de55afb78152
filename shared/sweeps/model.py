"""Trials of a sweep: what was drawn for each, and what it told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shared.jobs.search import Drawn
from shared.kernel.parts import column


class TrialState(StrEnum):
    RUNNING = "running"  # or on its way
    COMPLETED = "completed"
    STOPPED = "stopped"  # by the sweep: it lost
    FAILED = "failed"  # or was canceled


@dataclass(frozen=True)
class Trial:
    """`drawn` is what the study has, before it is rounded; `told` are the first values of the metric, in their order.
    Once it has ended, `value` is the best of all, and `dollars` what its nodes had cost; None until then. One that is
    not the sweep's `own` was asked for in its study by somebody who trains and tells it themselves: the sweep only
    learns from it."""

    number: int
    drawn: Mapping[str, Drawn]
    state: TrialState = TrialState.RUNNING
    told: Sequence[float] = ()
    dollars: float | None = None
    own: bool = True
    value: float | None = None

    @property
    def is_live(self) -> bool:
        """Whether it has a run that is on its way, or is to have one."""
        return self.own and self.state is TrialState.RUNNING

    def best(self, maximize: bool, interval: int | None = None) -> float | None:
        """The best that it told, up to an interval; None if it told nothing."""
        if interval is None and self.value is not None:
            return self.value
        values = self.told if interval is None else self.told[:interval]
        return (max(values) if maximize else min(values)) if values else None


@dataclass(frozen=True)
class Standing:
    """How the trials of a sweep stand. The look at the sweep writes this; the trials' study and runs know more."""

    begun: int = column("trials", 0)
    ended: int = column("trials_ended", 0)
    best: str = column("best_trial", "")  # the run of the best that is completed
    best_value: float | None = None  # of the sweep's metric
    dollars: float = column("trials_dollars", 0.0)  # what its trials' nodes cost so far
    beyond: float = column("trials_beyond", 0.0)  # of it, what the books charged trials after they had ended
    closing: str = column("sweep_closing", "")  # why no more trials begin
    look: int = column("sweep_look", 0)  # the number of the look that is asked for by the clock


@dataclass(frozen=True)
class TrialOf:
    """That a run is a trial of this sweep."""

    sweep: str = ""


def trial_run(sweep: str, number: int) -> str:
    """The name of a trial's run."""
    return f"{sweep}-t{number}"
