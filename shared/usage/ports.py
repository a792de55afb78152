"""The external port of usage: a service that measures the nodes of each job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from shared.kernel.parts import FeatureStore
from shared.usage.model import NodeUsage

MOST_JOBS = 40  # per request, because their names are in its URL


class NodeMetrics(Protocol):
    """The measurements of the jobs' nodes, which the workspace keeps for 93 days.

    Azure measures each minute, and values come some minutes late. Jobs that were not measured are missing from an
    answer. Each method sends one request for at most MOST_JOBS jobs, and raises Unavailable if nothing answers.
    """

    def nodes(self, jobs: Sequence[str], since: datetime, until: datetime) -> dict[str, NodeUsage]:
        """Return the use of these jobs' nodes from `since` to `until`, by job, without their GPUs."""

    def gpus(self, jobs: Sequence[str], since: datetime, until: datetime) -> dict[str, NodeUsage]:
        """Return the use of these jobs' GPUs, by job."""


NODE_METRICS: FeatureStore[NodeMetrics] = FeatureStore("node_metrics")
