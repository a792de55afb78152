"""Counts of nodes for the time in which the app did not count, from the workspace's own metrics.

The app counts at each check of a cluster. After it was stopped, or redeployed, its counts have a gap. Azure Monitor
counts each minute, so the check after a gap reads the counts of the gap, and records them as samples.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from shared.clusters.model import INSTANCE, Cluster, Decision, NodeCounts
from shared.clusters.ports import ClusterPorts
from shared.clusters.samples import COUNTED_EVERY, HOLDS, Sample
from shared.kernel.errors import TrainyardError

log = logging.getLogger(__name__)

WORKSPACE = "workspace"  # the origin of such a sample
LONGEST = timedelta(days=7)  # of a gap; the time before stays unknown
KEPT_EVERY = 2 * COUNTED_EVERY  # a count that did not change is recorded so often, as a count holds for HOLDS


def fill_gap(ports: ClusterPorts, cluster: Cluster, latest: Decision | None) -> None:
    """Record the counts since the cluster's latest check, if the check's count is too old to hold.

    Without an answer the gap stays: its nodes are unknown, and not charged.
    """
    now = ports.clock()
    if latest is None or cluster.kind == INSTANCE or now - latest.at <= HOLDS:
        return
    try:
        counts = ports.clusters.node_counts(cluster.name, max(latest.at, now - LONGEST), now)
    except TrainyardError as error:
        log.warning("the nodes of cluster %s since %s stay unknown: %s", cluster.name, latest.at, error)
        return
    for sample in samples_of(cluster, counts, latest.at, now):
        ports.samples.record(sample)


def samples_of(cluster: Cluster, counts: Iterable[NodeCounts], after: datetime, before: datetime) -> Iterator[Sample]:
    """Yield samples for these counts (oldest first): each change, and some counts in between."""
    last: NodeCounts | None = None
    for count in counts:
        if not after < count.at < before:
            continue
        if last is None or count.states != last.states or count.at - last.at >= KEPT_EVERY:
            last = count
            yield Sample(
                cluster=cluster.name,
                at=count.at,
                vm_size=cluster.vm_size,
                tier=cluster.tier,
                target=sum(count.states),
                running=count.running,
                idle=count.idle,
                leaving=count.leaving,
                unusable=count.unusable,
                seen_by=WORKSPACE,
                maximum=cluster.max_nodes,
            )
