"""Facts about clusters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.clusters.model import Cluster
from shared.kernel.facts import Fact


@dataclass(frozen=True)
class ClusterAtZero(Fact):
    """The cluster had nodes at the last check and has none now."""

    cluster: Cluster
    at: datetime


@dataclass(frozen=True)
class ClusterIdles(Fact):
    """At `at` the cluster has nodes that nothing has needed since `since`. Stated at every check."""

    cluster: Cluster
    since: datetime
    at: datetime
