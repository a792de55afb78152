"""Why keep this cluster up? A decision without I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.clusters.model import Cluster, Decision


@dataclass(frozen=True)
class Need:
    """What is known of a cluster's use: what needs it now, in words, or when its last run of ours ended."""

    busy: str | None = None
    last_used: datetime | None = None


def judge_cluster(cluster: Cluster, need: Need, latest: Decision | None, now: datetime) -> Decision:
    """One decision about a cluster.

    It goes to zero when nothing needs it, no node runs anything, and that has been so for its own idle time.
    """
    busy = need.busy
    decision = Decision(cluster.name, "keep", "busy", busy or "", now)
    if busy:
        return decision
    if cluster.busy_nodes:
        return replace(decision, code="busy_nodes", why=f"{cluster.busy_nodes} of {cluster.nodes} nodes are working.")
    since = (latest.idle_since if latest else None) or now
    since = max(since, need.last_used or since)
    decision = replace(decision, idle_since=since)
    if cluster.min_nodes == 0 and cluster.nodes == 0:
        return replace(decision, code="at_zero", why="It has no nodes.")
    if cluster.min_nodes == 0:
        return replace(decision, code="scales_itself", why=f"Its minimum is 0 already; {cluster.nodes} nodes are up.")
    idle = now - since
    if idle < timedelta(seconds=cluster.idle_seconds):
        why = f"Idle for {idle.total_seconds():.0f} of {cluster.idle_seconds:g} s."
        return replace(decision, code="idle_time", why=why)
    why = f"Nothing needs it, for {idle.total_seconds():.0f} s; its minimum was {cluster.min_nodes}."
    return replace(decision, action="to-zero", code="idle", why=why)
