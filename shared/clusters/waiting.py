"""Explain why a run has not started, in our words and Azure ML's. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.clusters.model import AllocationCode, AllocationError, Cluster
from shared.runs.model import Run, RunState
from shared.runs.progress.workloads import workload

WAITING = frozenset({RunState.RECEIVED, RunState.SUBMITTED, RunState.QUEUED})
COMES = frozenset({"submission", "allocating", "other_run"})  # codes of waits that end without intervention


@dataclass(frozen=True)
class Waiting:
    """`code` is submission, allocating, quota, other_run, too_many_nodes, broken or no_answer; `why` is a sentence.

    A quota has the family of machines, the cores in use and the cores allowed, if Azure's message names them; `words`
    is that message. `expected_at` is computed from how long the newest runs of each kind took, None if none completed.
    `after` are the running runs of unknown length of which this run needs nodes, if they are why no time is known.
    """

    code: str
    why: str
    since: datetime | None = None
    family: str = ""
    used: int | None = None
    limit: int | None = None
    words: str = ""
    expected_at: datetime | None = None  # when the run will probably start
    after: tuple[str, ...] = ()


def why_waiting(run: Run, cluster: Cluster | None, ahead: list[str]) -> Waiting:
    """Return the reason why a run has not started. `ahead` are the cluster's other jobs with an earlier submission."""
    since = run.progress.history[-1].at if run.progress.history else run.created_at
    if not run.jobs.job:
        return Waiting("submission", "Its job is being submitted to Azure ML.", since)
    if cluster is None:
        return Waiting("broken", f"The workspace has no cluster {run.asked.cluster}.", since)
    nodes = workload(run).fewest_nodes(run)
    if blocker := refusal(cluster, nodes):
        return blocker
    if ahead and cluster.busy_nodes + nodes > cluster.max_nodes:
        others = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
        verb = "are" if others else "is"
        in_use = f"{cluster.busy_nodes} of {cluster.max_nodes} nodes are in use"
        why = f"{ahead[0]}{others} {verb} ahead of it; {in_use}."
        return Waiting("other_run", why, since)
    moved = cluster.allocation_since if cluster.allocation == "Resizing" else None
    coming = max(0, cluster.target_nodes - cluster.idle_nodes - cluster.running_nodes)
    why = f"It waits for {_count(nodes)} of {cluster.name}: {cluster.idle_nodes} idle, {coming} being allocated."
    return Waiting("allocating", why, moved or since)


def refusal(cluster: Cluster, nodes: int) -> Waiting | None:
    """Return why the cluster can't provide this many nodes in its current state: the size of the cluster, a quota, or
    Azure ML's error.
    """
    if nodes > cluster.max_nodes:
        why = f"{nodes} nodes were requested; {cluster.name} has at most {cluster.max_nodes}."
        return Waiting("too_many_nodes", why)
    if not cluster.errors or cluster.idle_nodes >= nodes:
        return None
    error = cluster.errors[0]
    if error.code is AllocationCode.QUOTA:
        return _quota(cluster, error)
    why = f"{cluster.name} gets no nodes. Azure ML says: {error}"
    return Waiting("broken", why, cluster.allocation_since, words=error.words)


def _quota(cluster: Cluster, error: AllocationError) -> Waiting:
    known = error.used is not None and error.limit is not None
    usage = f", {error.used} of {error.limit} cores are in use" if known else ""
    why = f"The quota of {error.family or cluster.vm_size or 'this size'} is reached{usage}. Azure ML says: {error}"
    return Waiting("quota", why, cluster.allocation_since, error.family, error.used, error.limit, error.words)


def _count(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"
