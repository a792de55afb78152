"""What a run with a date holds, and how it comes to hold something else, whatever kind of run it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.deadlines.model import Date
from shared.deadlines.plan import Hold
from shared.runs.model import Run


@dataclass(frozen=True)
class HeldNodes:
    """What the run holds. `low_since`: for how long its low-priority nodes have all been there, or not."""

    on_low: bool  # whether it asks for low-priority nodes
    low_runs: bool  # whether it has all of them
    low_since: datetime
    dedicated: bool  # whether it has, or asks for, dedicated ones
    works: bool  # whether as many nodes work as it may have
    in_danger: bool = False  # whether the state is in the memory of fewer nodes than that, and would go with them


@dataclass(frozen=True)
class NodeChanges:
    """For how long nodes were waited for that could be had, in seconds, and when nodes began to work."""

    waits: tuple[float, ...]
    joined: tuple[datetime, ...]


@dataclass(frozen=True)
class Steps:
    """How the run comes to hold something: the run as it is to be, and the jobs that are to end."""

    run: Run
    to_cancel: tuple[str, ...] = ()


class Holding(Protocol):
    """How a kind of run holds nodes of several clusters."""

    @property
    def overlaps(self) -> bool:
        """Whether nodes may be made ready while others work."""

    def nodes(self, run: Run, date: Date, now: datetime) -> HeldNodes:
        """What the run holds now."""

    def steer(self, run: Run, date: Date, hold: Hold, roomy: str, now: datetime) -> Steps:
        """How the run comes to hold this, and `date.pace.holds_why` says why.

        `roomy` is the low-priority cluster with the most nodes that are up and idle.
        """

    def changes(self, run: Run, date: Date) -> NodeChanges:
        """How its nodes came and went."""
