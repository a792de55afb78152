"""What only some kinds of runs can do. Callers ask for a capability by type, as `isinstance(how, HasMembers)`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from shared.runs.model import Loss, Member, Run, Size
from shared.runs.ports import RunPorts


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
    def evict(self, ports: RunPorts, run: Run, index: int) -> str:
        """Cancel the job of one member, as losing its node does, and return its name. The run goes on without it.

        Raises NotFound for an unknown member, Conflict for one that isn't running.
        """
