"""The origin of a model: an in-toto statement with SLSA provenance, https://slsa.dev/provenance/v1. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from shared.jobs.location import DROPS_STORE, Location
from shared.jobs.readers.git import source_of
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import Environment
from shared.models.decide import ChangeRequest
from shared.models.evidence import Evidence
from shared.models.signature import STATEMENT
from shared.runs.model import Run, RunState
from shared.runs.views.summary import duration_seconds

Json = dict[str, Any]
PROVENANCE = "provenance.json"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:trainyard:training:v1"


def provenance(evidence: Evidence, name: str, number: int, asked: ChangeRequest) -> Json:
    """Return the statement. Its subjects are the model's files; its predicate describes everything they were made
    from.
    """
    run = evidence.run
    return {
        "_type": STATEMENT,
        "subject": [{"name": file, "digest": {"sha256": digest}} for file, digest in evidence.weights.items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": _asked_for(run),
                "internalParameters": {
                    "job": evidence.job,
                    "node": evidence.node,
                    "data": _data_facts(evidence),
                },
                "resolvedDependencies": [*_data(evidence), *_code(run), *_environment(evidence), *_parent(evidence)],
            },
            "runDetails": {
                "builder": {"id": evidence.workspace},
                "metadata": {"invocationId": run.name, **_times(run)},
                "byproducts": [
                    {"name": file.name, "digest": {"sha256": file.sha256}, "annotations": {"size": file.size}}
                    for file in evidence.files
                    if file.name not in evidence.weights
                ],
            },
            "trainyard_run": _run_facts(run),
            "trainyard_model": {
                "name": name,
                "version": number,
                "promotedAt": _iso(asked.at),
                "promotedBy": asked.by.name,
                "promotedById": asked.by.id,
                "why": asked.why,
            },
        },
    }


def _asked_for(run: Run) -> Json:
    return {
        "drop": run.asked.drop,
        "generation": run.asked.generation,
        "fingerprint": run.asked.fingerprint,
        "route": run.asked.route,
        "experiment": run.asked.experiment,
        "command": str(run.asked.request.command),
        "parameters": run.asked.parameters,
        "cluster": run.asked.cluster,
        "nodes": run.asked.nodes,
        "reads": list(run.asked.reads),
    }


def _data_facts(evidence: Evidence) -> Json:
    files = len(evidence.data)
    return {"files": files, "bytes": sum(blob.size for blob, _ in evidence.data), "notHashed": evidence.unhashed}


def _data(evidence: Evidence) -> list[Json]:
    """Return the drop's blobs, each with name, etag, size, MD5 and SHA-256."""
    return [
        {
            "name": blob.name,
            "uri": place_text(Location(DROPS_STORE, quote(blob.name))),
            "digest": {kind: value for kind, value in (("sha256", sha256), ("md5", blob.md5)) if value},
            "annotations": {"etag": blob.etag.strip('"'), "size": blob.size},
        }
        for blob, sha256 in evidence.data
    ]


def _code(run: Run) -> list[Json]:
    source = source_of(run.asked.request)
    digest = {kind: value for kind, value in (("sha256", run.jobs.code), ("gitCommit", source.commit)) if value}
    named = {"name": "code", "digest": digest, "annotations": {"changedSinceCommit": source.dirty}}
    uri = f"git+{source.repository}@{source.commit}" if source.commit and source.repository else ""
    return [named | ({"uri": uri} if uri else {})] if digest else []


def _environment(evidence: Evidence) -> list[Json]:
    """Return the environment, and each package installed in it."""
    own = evidence.run.asked.request.environment
    image, name = (own.image, str(own)) if isinstance(own, Environment) else ("", place_text(own))
    environment: Json = {"name": "environment", "uri": evidence.run.jobs.environment or name}
    rows = [environment | ({"annotations": {"image": image}} if image else {})]
    return rows + [
        {"name": name, "uri": f"pkg:pypi/{quote(name.lower())}@{quote(version)}"}
        for name, version in packages(evidence.node).items()
    ]


def packages(node: Json) -> dict[str, str]:
    """Return the packages that a node recorded, with their versions."""
    versions = node.get("packages")
    return {str(name): str(version) for name, version in versions.items()} if isinstance(versions, dict) else {}


def _parent(evidence: Evidence) -> list[Json]:
    if not evidence.parent:
        return []
    digest = {"digest": {"sha256": evidence.parent_digest}} if evidence.parent_digest else {}
    return [{"name": "parent model", "uri": f"urn:trainyard:model:{evidence.parent}", **digest}]


def _times(run: Run) -> Json:
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), run.created_at)
    ended = run.progress.history[-1].at if run.progress.history else run.created_at
    return {"startedOn": _iso(began), "finishedOn": _iso(ended)}


def _run_facts(run: Run) -> Json:
    cost = run.money.cost
    return {
        "name": run.name,
        "owner": run.people.owner,
        "ownerId": run.people.owner_id,
        "tags": run.people.tags,
        "attempts": run.progress.attempts,
        "history": [{"state": str(m.state), "at": _iso(m.at), "why": m.why} for m in run.progress.history],
        "seconds": duration_seconds(run),
        "dollars": cost.dollars if cost and not cost.unpriced else None,
        "metrics": run.archive.best_metrics,
        "lastMetrics": run.archive.last_metrics,
    }


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
