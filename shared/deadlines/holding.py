"""The nodes that a run with a deadline holds, and how the holding changes, for every kind of run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.deadlines.model import Date
from shared.deadlines.plan import NodeChoice
from shared.runs.model import Run


@dataclass(frozen=True)
class NodeRequest:
    """A request for one low-priority node, in the cluster's queue since `since`.

    `answered`: the node works. `lost`: the run had a node there until `since`.
    """

    cluster: str
    since: datetime
    answered: bool
    lost: bool = False


@dataclass(frozen=True)
class HeldNodes:
    """The nodes of the run. `low_since`: since when every low-priority node is present, or any is missing.

    `requests`: those for low-priority nodes.
    """

    on_low: bool  # whether the run requests low-priority nodes
    low_runs: bool  # whether the run has all its low-priority nodes
    low_since: datetime
    dedicated: bool  # whether the run has or requests dedicated nodes
    works: bool  # whether the maximum number of nodes works
    in_danger: bool = False  # whether fewer nodes than the maximum have the state in memory, and could lose it
    requests: tuple[NodeRequest, ...] = ()


@dataclass(frozen=True)
class NodeChanges:
    """The waits for available nodes, in seconds, and the times at which nodes started to work."""

    waits: tuple[float, ...]
    joined: tuple[datetime, ...]


@dataclass(frozen=True)
class Steps:
    """The steps to a new holding: the updated run, and the jobs to cancel."""

    run: Run
    to_cancel: tuple[str, ...] = ()


class Holding(Protocol):
    """How a kind of run holds nodes of several clusters."""

    @property
    def overlaps(self) -> bool:
        """Whether new nodes may become ready while others work."""

    def nodes(self, run: Run, date: Date, now: datetime) -> HeldNodes:
        """The nodes that the run holds now."""

    def steer(self, run: Run, date: Date, hold: NodeChoice, roomy: str, now: datetime) -> Steps:
        """The steps to this holding; `date.pace.holds_why` is the reason.

        `roomy` is the low-priority cluster with the most nodes that are up and idle.
        """

    def changes(self, run: Run, date: Date) -> NodeChanges:
        """How the run's nodes came and went."""

    def mended(self, run: Run, date: Date) -> Run:
        """The run completed with the values missing from a row of the previous version."""
