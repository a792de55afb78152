"""What only some kinds of runs can do. Callers ask for a capability by type, as `isinstance(how, HasMembers)`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from shared.deadlines.plan import Hold
from shared.runs.model import Loss, Member, Run, Size
from shared.runs.progress.workload import Ports


@dataclass(frozen=True)
class MembersView:
    """An elastic run as people see it. `members` have the names of their present jobs, `losses` of those that ended."""

    min_nodes: int
    resubmissions: int
    resubmitted: int
    deadline: datetime
    members: tuple[tuple[Member, str], ...]
    sizes: tuple[Size, ...]
    losses: tuple[tuple[Loss, str], ...] = ()


class HasMembers(ABC):
    """A run of single-node jobs, its members, of which each may end alone."""

    @abstractmethod
    def members(self, run: Run) -> MembersView:
        """The members as people see them."""

    @abstractmethod
    def evict(self, ports: Ports, run: Run, index: int) -> str:
        """Cancel the job of one member, as losing its node does, and return its name. The run goes on without it.

        Raises NotFound for an unknown member, Conflict for one that isn't running.
        """


@dataclass(frozen=True)
class HeldNodes:
    """The nodes that a run with a date has. `low_since`: since when all of its low-priority nodes are there, or not."""

    on_low: bool  # whether the run asks for low-priority nodes
    low_runs: bool  # whether the run has all of them
    low_since: datetime
    dedicated: bool  # whether the run has, or asks for, dedicated nodes
    works: bool  # whether as many nodes work as the run may have
    in_danger: bool = False  # whether the state is in the memory of fewer nodes than that, and would go with them


@dataclass(frozen=True)
class NodeChanges:
    """How long, in seconds, the run waited for nodes that were available, and when nodes began to work."""

    waits: tuple[float, ...]
    joined: tuple[datetime, ...]


class Steerable(ABC):
    """A run that may have a date, and then changes between low-priority and dedicated nodes."""

    overlaps: ClassVar[bool]  # whether dedicated and low-priority nodes can train together

    @abstractmethod
    def held_nodes(self, run: Run, now: datetime) -> HeldNodes:
        """The nodes that the run has now."""

    @abstractmethod
    def steer(self, run: Run, hold: Hold, roomy: str, now: datetime) -> tuple[dict[str, Any], tuple[str, ...]]:
        """How the run comes to hold these nodes: changes of its fields, and the jobs to cancel.

        `roomy` is the low-priority cluster with the most nodes that are up and idle.
        """

    @abstractmethod
    def node_changes(self, run: Run) -> NodeChanges:
        """How the run's nodes came and went."""
