"""Queue a check of a cluster."""

from __future__ import annotations

from datetime import datetime

from shared.clusters.lease_model import Lease
from shared.clusters.messages import CheckCluster
from shared.clusters.ports import ClusterPorts
from shared.kernel.storage import Queues

LOOK_SECONDS = 5.0  # a thousand runs that end together cost one check of their cluster


def ask_for_look(queues: Queues, cluster: str, delay: float = 0.0) -> None:
    queues.send(CheckCluster(cluster), delay)


def ask_for_look_soon(ports: ClusterPorts, cluster: str) -> None:
    """Queue a check in LOOK_SECONDS, unless one is already queued."""
    if ports.sweeps.claim_look(cluster, ports.clock(), LOOK_SECONDS):
        ask_for_look(ports.queues, cluster, LOOK_SECONDS)


def ask_for_both_looks(queues: Queues, lease: Lease, now: datetime) -> None:
    """Queue one check now, which scales the cluster up for the lease, and one at the lease's end, which lets its nodes
    go.
    """
    ask_for_look(queues, lease.cluster)
    ask_for_look(queues, lease.cluster, (lease.until - now).total_seconds() + 1)
