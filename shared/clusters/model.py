"""Clusters, and decisions about clusters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

CLUSTER, INSTANCE = "cluster", "instance"
LOW_PRIORITY = "low_priority"  # the tier of nodes that Azure may evict: Spot nodes, since 31 March 2026


class AllocationCode(StrEnum):
    """Why nodes can't be allocated, as far as code needs to know. The adapter translates Azure's message."""

    QUOTA = "quota"
    CAPACITY = "capacity"
    OTHER = "other"


@dataclass(frozen=True)
class AllocationError:
    """Why the cluster can't allocate nodes, in Azure's words. A message about a quota may name more than its code:
    the family of machines, the cores in use, and the cores allowed."""

    words: str
    code: AllocationCode = AllocationCode.OTHER
    family: str = ""
    used: int | None = None
    limit: int | None = None

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Cluster:
    """An Azure ML compute in its current state: an AmlCompute, or a compute instance as a cluster of one node.

    `nodes` counts all nodes that cost money; `busy_nodes` counts nodes that prepare or run something. `allocation` is
    Azure ML's state, Steady or Resizing, since `allocation_since`. `errors` say why the cluster can't allocate nodes.
    The administrator sets `pin`, `project` and `idle_auto` with the compute's tags.
    """

    name: str
    min_nodes: int
    max_nodes: int
    idle_seconds: float
    nodes: int = 0
    busy_nodes: int = 0
    tier: str = ""
    vm_size: str = ""
    target_nodes: int = 0
    running_nodes: int = 0
    idle_nodes: int = 0
    preparing_nodes: int = 0
    leaving_nodes: int = 0
    unusable_nodes: int = 0
    allocation: str = ""
    allocation_since: datetime | None = None
    errors: tuple[AllocationError, ...] = ()
    kind: str = CLUSTER
    pin: str = ""  # why the cluster must not be scaled down
    project: str = ""  # the project that pays for it
    idle_auto: bool = False  # whether the idle time is learned from past gaps


@dataclass(frozen=True)
class NodeCounts:
    """The nodes of a cluster in the minute from `at` on, as counted by the workspace itself."""

    at: datetime
    running: int = 0
    idle: int = 0
    leaving: int = 0
    unusable: int = 0

    @property
    def states(self) -> tuple[int, ...]:
        return self.running, self.idle, self.leaving, self.unusable


@dataclass(frozen=True)
class Decision:
    """A decision about a cluster, and the reason. `idle_since` is None while something keeps the cluster busy.

    `min_nodes` is the new minimum, None to leave it unchanged. `replaces` is the old minimum while a change is under
    way: if the app crashes in between and the cluster is needed, the next check restores the old minimum. `findings`
    need no decision, but people should know them. `asked_by` is the person who requested the decision, with the object
    id in Entra ID; the timer's own decisions have none.
    """

    cluster: str
    action: str  # "keep", "wait", "to-zero" or "stop"
    code: str
    why: str
    at: datetime
    idle_since: datetime | None = None
    min_nodes: int | None = None
    replaces: int = 0
    findings: tuple[str, ...] = ()
    of_runs: tuple[str, ...] = ()  # the findings about runs on the cluster
    dry_run: bool = False
    asked_by: str = ""
    asked_by_id: str = ""
