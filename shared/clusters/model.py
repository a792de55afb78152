"""Clusters and what was decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Cluster:
    """An Azure ML AmlCompute as it is now. `busy_nodes` are those that prepare or run something."""

    name: str
    min_nodes: int
    max_nodes: int
    idle_seconds: float
    nodes: int = 0
    busy_nodes: int = 0
    tier: str = ""
    vm_size: str = ""


@dataclass(frozen=True)
class Decision:
    """What a sweep decided about a cluster, and why. `idle_since` is None while something keeps it busy."""

    cluster: str
    action: str  # "keep" or "to-zero"
    code: str
    why: str
    at: datetime
    idle_since: datetime | None = None
