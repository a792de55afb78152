"""Dry run: the job that a request would become, and why the job could not start now. Creates nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.jobs.build import build
from shared.jobs.readers.variables import without_values
from shared.runs.features import before_start
from shared.runs.intake.insert_run import run_name
from shared.runs.intake.parse_request import ParsedRequest, first_record, in_words, read_request
from shared.runs.intake.request import RunRequest
from shared.runs.intake.start_blockers import checked_job, data_reasons, empty_mounts
from shared.runs.model import Run
from shared.runs.ports import Reason, RunPorts
from shared.runs.progress.workloads import workload


def dry_run(
    ports: RunPorts, request: RunRequest, key: str | None = None, owner: str = "", owner_id: str = ""
) -> dict[str, Any]:
    """The job of this request, and why it could not start now: `{"job": ..., "reasons": [{"code", "message"}]}`.

    For an elastic run, the job is the first member's. Creates nothing. Without a key, the job's name differs at every
    call, as a real run's name would.
    """
    parsed_request = read_request(ports, request, run_name(ports.new_token, key))
    run = first_record(ports, parsed_request)
    run = replace(run, people=replace(run.people, owner=owner, owner_id=owner_id))
    how = workload(run)
    job = how.job_spec(run, how.jobs(run).get(0, run.name), ports.rendezvous, run.created_at)
    job, reasons = checked_job(ports, job, how.fewest_nodes(run))
    reasons = [*empty_mounts(parsed_request), *data_reasons(ports.datasets, parsed_request.order.data), *reasons]
    run = ports.admission.priced(run)
    if why := ports.admission.refusal(run):
        reasons.append(Reason(code=why.code, message=why.why))
    return {
        "job": ports.jobs.document(without_values(job)),
        "reasons": reasons,
        "cost": costs(run),
        **before_start(run),
        **_translation_report(parsed_request),
    }


def plan(ports: RunPorts, request: RunRequest) -> dict[str, Any]:
    """Like dry_run, for a job with possible errors; the errors appear in `reasons`.

    The job keeps the values of its environment variables: it is the caller's own document, returned for use elsewhere.
    """
    parsed_request = read_request(ports, request, run_name(ports.new_token, None))
    built = build(parsed_request.order)
    wrong = [Reason(code=p.code, message=in_words(parsed_request, p)) for p in built.problems]
    if built.job is None:
        return {"job": {}, "reasons": wrong}
    job, reasons = checked_job(ports, built.job, built.job.node_count)
    return {
        "job": ports.jobs.document(job),
        "reasons": [*wrong, *empty_mounts(parsed_request), *reasons],
        **_translation_report(parsed_request),
    }


def _translation_report(parsed_request: ParsedRequest) -> dict[str, Any]:
    """The report of a translated job: the result of each field's translation."""
    findings = parsed_request.written.findings if parsed_request.written else None
    return {} if findings is None else {"report": findings}


def costs(run: Run) -> dict[str, Any]:
    """The cost of a run as far as known before the start."""
    return {
        "project": run.money.project,
        "estimated": run.money.estimated,
        "greatest": run.money.greatest,
        "price": run.money.price or None,
        "price_from": run.money.price_from,
    }
