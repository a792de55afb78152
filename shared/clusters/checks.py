"""Queue a check of a cluster."""

from __future__ import annotations

from datetime import datetime

from shared.clusters.lease_model import Lease
from shared.clusters.messages import CheckCluster
from shared.clusters.ports import ClusterPorts
from shared.kernel.storage import Queues

CHECK_SECONDS = 5.0  # a thousand runs that end together cost one check of their cluster


def queue_check(queues: Queues, cluster: str, delay: float = 0.0) -> None:
    queues.send(CheckCluster(cluster), delay)


def queue_check_soon(ports: ClusterPorts, cluster: str) -> None:
    """Queue a check in LOOK_SECONDS, unless a check is already queued."""
    if ports.decisions.claim_check(cluster, ports.clock(), CHECK_SECONDS):
        queue_check(ports.queues, cluster, CHECK_SECONDS)


def queue_checks_of_lease(queues: Queues, lease: Lease, now: datetime) -> None:
    """Queue two checks for a lease: the check now scales the cluster up, and the check at the lease's end lets the
    nodes go.
    """
    queue_check(queues, lease.cluster)
    queue_check(queues, lease.cluster, (lease.until - now).total_seconds() + 1)
