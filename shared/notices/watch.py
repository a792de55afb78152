"""Moments that no lifecycle event tells of: a run loses its nodes again and again, a cluster idles, a message fails."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from shared.clusters.model import Cluster
from shared.events.announce import tell
from shared.notices.decide import crossed, is_idle_too_long
from shared.runs.model import Run, RunState
from shared.system import QUEUES, System


def evictions(run: Run) -> int:
    """How often the run lost nodes."""
    return run.elastic.resubmitted if run.elastic else max(run.attempts - 1, 0)


def look_at_evictions(system: System, run: Run, state: RunState, changes: dict[str, Any]) -> None:
    """Tell that a run is evicted often, before the step is written that makes it so: who dies here repeats both."""
    if run.elastic:
        after = (changes.get("elastic") or run.elastic).resubmitted
    else:
        after = evictions(run) + (run.state is RunState.RUNNING and state is RunState.QUEUED)
    if crossed(evictions(run), after):
        tell(system, "RunEvicted", run.name, {"run": run.name, "evictions": after})


def look_at_idleness(system: System, cluster: Cluster, idle_since: datetime | None) -> None:
    """Tell that a cluster has nodes and has had nothing to do for too long, once for each such time."""
    if cluster.nodes and idle_since is not None and is_idle_too_long(system.clock() - idle_since):
        words = {"cluster": cluster.name, "nodes": cluster.nodes, "idle since": idle_since.isoformat()}
        tell(system, "ClusterIdle", f"{cluster.name}/{idle_since.isoformat()}", words)


def look_at_poison(system: System) -> None:
    """Tell of the messages that lie in the poison queues, each once: the same text is the same message."""
    counts = system.queues.counts(f"{queue}-poison" for queue in QUEUES)
    for queue in QUEUES:
        if counts[f"{queue}-poison"]:
            for text in system.queues.peek(f"{queue}-poison"):
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                tell(system, "MessagePoisoned", f"{queue}/{digest}", {"queue": queue})
