"""Node counts of a cluster at a moment, from which its cost is computed. Pure.

The jobs' times miss the allocation before a job and the idle tail after it. Between two samples, at most HOLDS apart, a
cluster is assumed to have the nodes of the earlier sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.clusters.model import Cluster

COUNTED_EVERY = timedelta(minutes=5)  # the period of the scaling timer
HOLDS = 3 * COUNTED_EVERY  # maximum validity of a count if no other follows: two checks in a row may fail
STEADY = "Steady"  # Azure ML's allocation state of a cluster that is not changing its size
TIMER, EVENT = "timer", "event"  # what caused a check of the cluster


@dataclass(frozen=True)
class Sample:
    """The nodes of a cluster at a moment, by activity. Preempted nodes are gone and cost nothing.

    `target` is the size that Azure ML is scaling the cluster to, `maximum` the most nodes that it may have (0 in
    samples of versions that did not record it). `allocation` is Azure ML's state, Steady or Resizing, since
    `allocation_since`. `seen_by` is timer or event (sweep in old rows).
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
    seen_by: str = TIMER
    maximum: int = 0
    allocation_since: datetime | None = None

    @property
    def nodes(self) -> int:
        """Return the number of paid nodes."""
        return self.running + self.idle + self.preparing + self.leaving + self.unusable


def sample_of(cluster: Cluster, at: datetime, seen_by: str = TIMER) -> Sample:
    """Return the sample of a cluster in its state at this moment."""
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
        maximum=cluster.max_nodes,
        allocation_since=cluster.allocation_since,
    )


def day_of(at: datetime) -> str:
    """Return the day in UTC under which samples are stored, such as 20260131."""
    return f"{at.astimezone(UTC):%Y%m%d}"
