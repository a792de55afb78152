"""Records as the JSON that the HTTP API answers with. Times are ISO 8601 in UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shared.clusters.model import Cluster, Decision
from shared.drops.model import Drop
from shared.runs.model import Elastic, Run, member_job

Json = dict[str, Any]


def drop(drop: Drop) -> Json:
    return {
        "drop": str(drop.key),
        "state": drop.state,
        "code": drop.code,
        "why": drop.why,
        "generation": drop.generation,
        "run": drop.run,
        "fingerprint": drop.fingerprint,
        "blobs": drop.blobs,
        "bytes": drop.bytes,
        "opened_at": _time(drop.opened_at),
        "sealed_at": _time(drop.sealed_at),
    }


def run(run: Run) -> Json:
    return {
        "run": run.name,
        "state": run.state,
        "drop": run.drop,
        "route": run.route,
        "fingerprint": run.fingerprint,
        "experiment": run.experiment,
        "cluster": run.cluster,
        "nodes": run.nodes,
        "attempts": run.attempts,
        "reason": run.reason,
        "job": run.job,
        "code": run.code,
        "environment": run.environment,
        "created_at": _time(run.created_at),
        "archived_at": _time(run.archived_at),
        "cancel_asked_at": _time(run.cancel_asked_at),
        "retry_of": run.retry_of,
        "elastic": run.elastic and _elastic(run, run.elastic),
        "output": run.output,
        "metrics": {"last": run.last_metrics, "best": run.best_metrics},
        "history": [{"state": m.state, "at": _time(m.at), "why": m.why} for m in run.history],
    }


def _elastic(run: Run, elastic: Elastic) -> Json:
    members = [
        {
            "member": m.index,
            "job": member_job(run.name, m.index, m.attempt),
            "attempt": m.attempt,
            "state": m.state,
            "at": _time(m.at),
            "why": m.why,
        }
        for m in elastic.members
    ]
    return {
        "min_nodes": elastic.min_nodes,
        "resubmitted": elastic.resubmitted,
        "resubmissions": elastic.resubmissions,
        "deadline": _time(elastic.deadline),
        "members": members,
        "sizes": [{"at": _time(size.at), "nodes": size.nodes} for size in elastic.sizes],
    }


def cluster(cluster: Cluster, decision: Decision | None) -> Json:
    return {
        "name": cluster.name,
        "nodes": cluster.nodes,
        "busy_nodes": cluster.busy_nodes,
        "min_nodes": cluster.min_nodes,
        "max_nodes": cluster.max_nodes,
        "idle_seconds": cluster.idle_seconds,
        "tier": cluster.tier,
        "vm_size": cluster.vm_size,
        "decision": decision and _decision(decision),
    }


def _decision(decision: Decision) -> Json:
    return {
        "action": decision.action,
        "code": decision.code,
        "why": decision.why,
        "at": _time(decision.at),
        "idle_since": _time(decision.idle_since),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
