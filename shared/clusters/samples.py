"""How many nodes a cluster had at a moment, which is the truth for what it cost. Pure.

The times of jobs miss the allocation before them and the idle tail after them. Between two samples a cluster is taken
to have had the nodes of the earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from shared.clusters.model import Cluster


@dataclass(frozen=True)
class Sample:
    """The nodes of a cluster at a moment, by what they did. Preempted nodes are gone, and cost nothing.

    `target` is what Azure ML is bringing the cluster to; `allocation` its word for that: Steady or Resizing. `seen_by`
    is sweep or event.
    """

    cluster: str
    at: datetime
    vm_size: str = ""
    tier: str = ""  # low_priority or dedicated
    target: int = 0
    running: int = 0
    idle: int = 0
    preparing: int = 0
    leaving: int = 0
    unusable: int = 0
    allocation: str = ""
    seen_by: str = "sweep"

    @property
    def nodes(self) -> int:
        """All that are paid for, whatever they do."""
        return self.running + self.idle + self.preparing + self.leaving + self.unusable


def sample_of(cluster: Cluster, at: datetime, seen_by: str = "sweep") -> Sample:
    """The sample that a cluster, as it is at this moment, makes."""
    return Sample(
        cluster=cluster.name,
        at=at,
        vm_size=cluster.vm_size,
        tier=cluster.tier,
        target=cluster.target_nodes,
        running=cluster.running_nodes,
        idle=cluster.idle_nodes,
        preparing=cluster.preparing_nodes,
        leaving=cluster.leaving_nodes,
        unusable=cluster.unusable_nodes,
        allocation=cluster.allocation,
        seen_by=seen_by,
    )


def day_of(at: datetime) -> str:
    """The day, in UTC, by which samples are kept together: 20260131."""
    return f"{at.astimezone(UTC):%Y%m%d}"
