"""Capabilities of only some kinds of runs. Callers check for a capability by type: `isinstance(how, HasMembers)`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from shared.runs.model import Loss, Member, Run, Size
from shared.runs.ports import RunPorts


@dataclass(frozen=True)
class MembersView:
    """The public view of an elastic run. `members` have the names of current jobs, `losses` of ended jobs."""

    min_nodes: int
    resubmissions: int
    resubmitted: int
    deadline: datetime
    members: tuple[tuple[Member, str], ...]
    sizes: tuple[Size, ...]
    losses: tuple[tuple[Loss, str], ...] = ()


class HasMembers(ABC):
    """A run of single-node jobs, its members, each of which may end independently."""

    @abstractmethod
    def members(self, run: Run) -> MembersView:
        """The public view of the members."""

    @abstractmethod
    def evict(self, ports: RunPorts, run: Run, index: int) -> str:
        """Cancel the job of one member, as if it lost its node, and return the job's name. The run continues.

        Raises NotFound for an unknown member, and Conflict for a member that isn't running.
        """
