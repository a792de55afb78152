"""Clusters and what was decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Cluster:
    """An Azure ML AmlCompute as it is now. `nodes` are those that cost money, whatever they do; `busy_nodes` those that
    prepare or run something.

    `allocation` is Azure ML's word, Steady or Resizing, since `allocation_since`. `errors` are its own words for what
    it can't allocate: quota, capacity.
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
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """What a sweep decided about a cluster, and why. `idle_since` is None while something keeps it busy."""

    cluster: str
    action: str  # "keep" or "to-zero"
    code: str
    why: str
    at: datetime
    idle_since: datetime | None = None
