"""Translate a Batch AI document, for users who migrate from Batch AI. Creates nothing."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from shared.api.requests import ImportRequest
from shared.api.run_answers import Imported
from shared.jobs.batchai.cluster import read_cluster
from shared.jobs.batchai.document import CLUSTER, JOB, PROJECT, kind_of, scripts_of
from shared.jobs.batchai.given import BatchAI
from shared.jobs.batchai.project import read_project
from shared.jobs.batchai.report import TranslationReport
from shared.kernel.encode import Json
from shared.kernel.errors import Impossible
from shared.runs.intake.dry_run import plan
from shared.runs.intake.request import RunRequest
from shared.runs.ports import RunPorts


def import_document(ports: RunPorts, body: ImportRequest) -> Annotated[Json, Imported]:
    """Return the job, compute or project, and the report. Raises Impossible for a document that is not Batch AI's."""
    kind = kind_of(body.document)
    given = body.batchai or BatchAI()
    if kind == JOB:
        run_request = RunRequest(job=body.document, batchai=given, cluster=body.cluster, experiment=body.experiment)
        return {"kind": kind, **plan(ports, run_request), "scripts": scripts_of(body.document)}
    if kind == CLUSTER:
        compute, mounts = read_cluster(body.document, body.cluster or "", given.storage_account or "")
        return {"kind": kind, "compute": compute, "report": _said(mounts.report)}
    if kind == PROJECT:
        report = TranslationReport()
        project = read_project(body.document, report)
        facts = {name: value for name, value in dataclasses.asdict(project).items() if name != "mounts"}
        return {"kind": kind, "project": facts, "report": _said(report)}
    raise Impossible(
        "The document is not a Batch AI document: expected a job.json, a cluster.json or a project.json.", "not_batchai"
    )


def _said(report: TranslationReport) -> list[dict[str, Any]]:
    if report.problems:
        raise Impossible("; ".join(f"{p.path} {p.message}" for p in report.problems), "bad_batchai")
    return [dataclasses.asdict(finding) for finding in report.findings]
