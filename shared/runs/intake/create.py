"""Create a run requested by a person. Runs made from other runs are in retry_and_continue.py."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec

from shared.jobs.uploads import check_complete
from shared.kernel.errors import Impossible
from shared.runs.features import check
from shared.runs.intake.insert_run import made_before, record, run_name
from shared.runs.intake.parse_request import first_record, read_request
from shared.runs.intake.request import RunRequest
from shared.runs.intake.start_blockers import check_possible, empty_mounts, no_data
from shared.runs.model import Run
from shared.runs.ports import RunPorts


def create_run(
    ports: RunPorts, request: RunRequest, key: str | None = None, owner: str = "", owner_id: str = ""
) -> Run:
    """Record the run and queue the submission. A repeated key returns the existing run, after any failure in between.

    Raises Conflict if the key was used for another request, and Impossible for a request that can't become a job. After
    a crash between the record and the queue, the hourly reconcile queues the submission.
    """
    name, request_digest = run_name(ports.new_token, key), digest(request)
    if key and (made := made_before(ports, name, request_digest)):
        return made
    parsed_request = read_request(ports, request, name)
    data = parsed_request.order.data
    if absent := no_data(data):
        raise Impossible(absent, "no_data")
    if missing := empty_mounts(parsed_request):
        raise Impossible(" ".join(reason["message"] for reason in missing), "no_data")
    run = first_record(ports, parsed_request)
    run = replace(
        run, asked=replace(run.asked, digest=request_digest), people=replace(run.people, owner=owner, owner_id=owner_id)
    )
    check_complete(ports, run.asked.request)
    check(ports, run)
    check_possible(ports.jobs, ports.capacity, run)
    return record(ports, run)


def digest(request: RunRequest) -> str:
    """A hash of the request, independent of the order of keys."""
    fields = msgspec.to_builtins(request)
    if request.sweep is None:  # keep the digest of versions without this field
        del fields["sweep"]
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()
