"""What happens to clusters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.clusters.model import Cluster
from shared.kernel.facts import Fact


@dataclass(frozen=True)
class ClusterAtZero(Fact):
    """The cluster had nodes at the last look, and has none now."""

    cluster: Cluster
    at: datetime


@dataclass(frozen=True)
class ClusterIdles(Fact):
    """The cluster has nodes that nothing needs, since `since` and at `at`. Stated at every look."""

    cluster: Cluster
    since: datetime
    at: datetime
