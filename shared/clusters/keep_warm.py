"""Keep a run's nodes warm after the run ends."""

from __future__ import annotations

from datetime import timedelta

from shared.clusters.checks import queue_checks_of_lease
from shared.clusters.lease_model import Lease, lease_id
from shared.clusters.ports import ClusterPorts
from shared.runs.model import Run
from shared.runs.progress.workloads import workload


def keep_warm(ports: ClusterPorts, run: Run) -> None:
    """Make the lease requested by a run, from the run's end on. A repeat returns the existing lease."""
    ended = run.progress.history[-1].at
    until = ended + min(timedelta(seconds=run.asked.keep_warm_seconds), ports.rules.longest_lease)
    if until <= ports.clock():
        return
    nodes = workload(run).fewest_nodes(run)
    named = lease_id(ended, run.name)
    made = Lease(
        named,
        run.asked.cluster,
        nodes,
        run.people.owner,
        "as it asked",
        ended,
        until,
        run=run.name,
        owner_id=run.people.owner_id,
    )
    if ports.leases.insert(made):
        queue_checks_of_lease(ports.queues, made, ports.clock())
