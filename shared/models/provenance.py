"""The origin of a model: an in-toto statement with SLSA provenance, https://slsa.dev/provenance/v1. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shared.jobs.readers.pipeline import step_inputs
from shared.kernel.encode import plain_part
from shared.models.decide import ChangeRequest
from shared.models.evidence import Evidence
from shared.models.signature import STATEMENT
from shared.models.sources import jobs_of, not_known, packages, resources
from shared.runs.features import parts
from shared.runs.model import Measured, Run, RunState
from shared.runs.views.summary import duration_seconds, most_telling_first

Json = dict[str, Any]
PROVENANCE = "provenance.json"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:trainyard:training:v1"


def provenance(evidence: Evidence, name: str, number: int, asked: ChangeRequest) -> Json:
    """Return the statement. The subjects are the model's files; the predicate describes the sources of the files."""
    run = evidence.run
    return {
        "_type": STATEMENT,
        "subject": [{"name": file, "digest": {"sha256": digest}} for file, digest in evidence.weights.items()],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": _asked_for(evidence),
                "internalParameters": _internals(evidence),
                "resolvedDependencies": resources(evidence),
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
            "trainyard_run": _run_facts(evidence),
            "trainyard_stated": evidence.stated,
            "trainyard_not_known": [*not_known(evidence), *_claims(asked)],
            "trainyard_model": {
                "name": name,
                "version": number,
                "promotedAt": _iso(asked.at),
                "promotedBy": asked.by.name,
                "promotedById": asked.by.id,
                "promoterIsVerified": bool(asked.by.id) or asked.by_rule,
                "promotedByRule": asked.by_rule,
                "why": asked.why,
            },
        },
    }


def _internals(evidence: Evidence) -> Json:
    nodes = {place: {**facts, "packages": len(packages(facts))} for place, facts in evidence.nodes.items()}
    return {"job": evidence.job, "node": evidence.node, "nodes": nodes, "data": _data_facts(evidence)}


def _asked_for(evidence: Evidence) -> Json:
    run, maker = evidence.run, evidence.maker
    inputs = step_inputs(run.asked.request)
    its = {
        step: {"command": str(job.command), "parameters": inputs.get(step, {})}
        for step, job in jobs_of(evidence)
        if step
    }
    return {
        "kind": run.asked.kind or "single job",
        "drop": run.asked.drop,
        "generation": run.asked.generation,
        "fingerprint": run.asked.fingerprint,
        "route": run.asked.route,
        "experiment": run.asked.experiment,
        "command": str(maker.asked.request.command),
        "parameters": maker.asked.parameters,
        "cluster": maker.asked.cluster,
        "nodes": maker.asked.nodes,
        "reads": list(run.asked.reads),
        **({"trial": maker.name} if maker is not run else {}),
        **({"steps": its} if its else {}),
        **({"continues": list(evidence.continued)} if evidence.continued else {}),
    }


def _data_facts(evidence: Evidence) -> Json:
    files = len(evidence.data)
    counted = {"files": files, "bytes": sum(blob.size for blob, _ in evidence.data), "notHashed": evidence.unhashed}
    return {**counted, **evidence.checked}


def _times(run: Run) -> Json:
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), run.created_at)
    ended = run.progress.history[-1].at if run.progress.history else run.created_at
    return {"startedOn": _iso(began), "finishedOn": _iso(ended)}


def _claims(asked: ChangeRequest) -> list[str]:
    if asked.by.id or asked.by_rule:
        return []
    claim = f"{asked.by.name} is the client's own claim" if asked.by.name else "nobody signed in"
    return [f"Who promoted the model: {claim}."]


def _run_facts(evidence: Evidence) -> Json:
    run, maker = evidence.run, evidence.maker
    cost, measured = run.money.cost, run.measured
    return {
        "name": run.name,
        "owner": run.people.owner,
        "ownerId": run.people.owner_id,
        "ownerIsVerified": bool(run.people.owner_id),
        "tags": run.people.tags,
        "attempts": maker.progress.attempts,
        "history": [{"state": str(m.state), "at": _iso(m.at), "why": m.why} for m in run.progress.history],
        "seconds": duration_seconds(run),
        "dollars": cost.dollars if cost and not cost.unpriced else None,
        "metrics": {name: _metric(measured, name) for name in most_telling_first(measured.of_model)},
        "savedAtStep": measured.saved_step,
        "trainedOn": {"verdict": run.data.trained_on, "why": run.data.note},
        **_of_features(run),
    }


def _of_features(run: Run) -> Json:
    """Return the features' views of the run, in the form of answers: steps, members, the trials of a sweep."""
    told = {part.name: plain_part(run, part) for part in parts()}
    return {name: value for name, value in told.items() if value}


def _metric(measured: Measured, name: str) -> Json:
    return {
        "value": measured.of_model[name],
        "saidBy": measured.said_by(name),
        "best": measured.best.get(name),
        "bestAtStep": measured.best_steps.get(name),
    }


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
