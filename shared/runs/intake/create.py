"""Runs that people ask for: make one, or say what would be made. Those made from other runs are in successors.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.jobs.build import build
from shared.jobs.job import nodes
from shared.jobs.uploads import check_complete
from shared.kernel.errors import Impossible
from shared.runs.intake.insert_run import made_before, record, run_name
from shared.runs.intake.parse_request import Asked, first_record, in_words, read_request
from shared.runs.intake.request import RunRequest, digest
from shared.runs.intake.start_blockers import Reason, check_possible, data_reasons, empty_mounts, looked_over, no_data
from shared.runs.model import Run
from shared.runs.progress.workloads import workload
from shared.system import System


def create_run(system: System, request: RunRequest, key: str | None = None, owner: str = "", owner_id: str = "") -> Run:
    """Record the run and queue its submission. The same key is the same run, whatever happened in between.

    Raises Conflict if the key was used for another request, Impossible for one that can't become a job. If it dies
    after the record was written, the reconcile timer queues the submission.
    """
    name, fingerprint = run_name(system, key), digest(request)
    if key and (made := made_before(system, name, fingerprint)):
        return made
    asked = read_request(system, request, name)
    data = asked.order.data
    if absent := no_data(data):
        raise Impossible(absent, "no_data")
    if missing := empty_mounts(asked):
        raise Impossible(" ".join(reason["message"] for reason in missing), "no_data")
    run = replace(first_record(system, asked), asked=fingerprint, owner=owner, owner_id=owner_id)
    check_complete(system, run.request)
    check_possible(system, run)
    return record(system, run)


def dry_run(system: System, request: RunRequest, key: str | None = None) -> dict[str, Any]:
    """The job that would be sent, and why it could not start now: `{"job": ..., "reasons": [{"code", "message"}]}`.

    Of an elastic run it is the first member's. Makes nothing. Without a key the job has another name at every call, as
    a real one would.
    """
    asked = read_request(system, request, run_name(system, key))
    run = first_record(system, asked)
    how = workload(run)
    job = how.request(run, how.jobs(run)[0], system.rendezvous, run.created_at)
    job, reasons = looked_over(system, job, how.fewest_nodes(run))
    reasons = [*empty_mounts(asked), *data_reasons(system, asked.order.data), *reasons]
    run = system.purse.priced(run)
    if why := system.purse.refusal(run):
        reasons.append(Reason(code=why.code, message=why.why))
    return {"job": job, "reasons": reasons, "cost": costs(run), **_told(asked)}


def plan(system: System, request: RunRequest) -> dict[str, Any]:
    """The same for a Batch AI job that nobody may want to send yet: what is wrong with it is among the reasons."""
    asked = read_request(system, request, run_name(system, None))
    built = build(asked.order)
    job, reasons = looked_over(system, built.job, nodes(built.job))
    wrong = [Reason(code=p.code, message=in_words(asked, p)) for p in built.problems]
    return {"job": job, "reasons": [*wrong, *empty_mounts(asked), *reasons], **_told(asked)}


def _told(asked: Asked) -> dict[str, Any]:
    """Of a Batch AI job, what became of its fields."""
    return {"report": [finding.said() for finding in asked.adopted.report.findings]} if asked.adopted else {}


def costs(run: Run) -> dict[str, Any]:
    """What is known of a run's cost before it starts."""
    return {
        "project": run.project,
        "estimated": run.estimated_cost,
        "greatest": run.greatest_cost,
        "price": run.price or None,
        "price_from": run.price_from,
    }
