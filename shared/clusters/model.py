"""Clusters and what was decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

CLUSTER, INSTANCE = "cluster", "instance"


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
    """An Azure ML compute as it is now: an AmlCompute, or a compute instance as a cluster of one node.

    `nodes` are those that cost money, whatever they do; `busy_nodes` those that prepare or run something. `allocation`
    is Azure ML's word, Steady or Resizing, since `allocation_since`. `errors` say why it can't
    allocate nodes. `pin`, `project` and `idle_auto` are the administrator's, from the compute's tags.
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
    pin: str = ""  # why it must stay as it is
    project: str = ""  # whose budget it is charged to
    idle_auto: bool = False  # whether its idle time is chosen from what was seen


@dataclass(frozen=True)
class Decision:
    """What a sweep decided about a cluster, and why. `idle_since` is None while something keeps it busy.

    `min_nodes` is what its minimum is to be, None to leave it. `replaces` is the minimum that a change under way
    lowers: whoever finds it, and the cluster needed, puts it back. `findings` ask for no decision, but are to be known.
    `asked_by` is who asked for it, with their object id in Entra ID; the sweep itself asks nobody.
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
    of_runs: tuple[str, ...] = ()  # the findings that are about runs on it
    dry_run: bool = False
    asked_by: str = ""
    asked_by_id: str = ""
