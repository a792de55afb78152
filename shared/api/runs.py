"""Runs over HTTP: create, cancel, retry, continue, annotate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from shared.api import queries
from shared.api.records import RunAnswer
from shared.api.requests import (
    NO_CHANGES,
    SAME_JOB,
    Changes,
    CreateQuery,
    NoteRequest,
    RetryChanges,
    TagsRequest,
)
from shared.api.run_answers import DryRun
from shared.clusters.ports import ClusterPorts
from shared.kernel.encode import Json
from shared.kernel.person import Person
from shared.kernel.reply import Reply
from shared.runs.answers import Accepted, accepted
from shared.runs.intake import create, dry_run, retry_and_continue
from shared.runs.intake.request import RunName, RunRequest
from shared.runs.model import FINAL
from shared.runs.ports import RunPorts
from shared.runs.progress import cancel
from shared.runs.views import notes_and_tags


def create_run(
    ports: RunPorts,
    query: CreateQuery,
    body: RunRequest,
    key: str | None,
    by: Person,
    admit_code: Callable[[], None],
) -> Annotated[Reply, {200: DryRun, 202: Accepted}]:
    if body.job is not None:  # a job's command is code
        admit_code()
    if query.dry_run:
        return Reply(dry_run.dry_run(ports, body, key, *by))
    return accepted(create.create_run(ports, body, key, *by))


def cancel_run(ports: RunPorts, run: RunName, by: Person) -> Annotated[Reply, {200: Accepted, 202: Accepted}]:
    record = cancel.cancel_run(ports, run, by=by)
    state = record.progress.state
    return Reply({"run": record.name, "state": state}, 200 if state in FINAL else 202)


delete_run = cancel_run  # a run's record is never deleted


def retry_run(
    ports: RunPorts, run: RunName, by: Person, body: RetryChanges = SAME_JOB
) -> Annotated[Reply, {202: Accepted}]:
    changes = retry_and_continue.JobChanges(body.cluster, body.timeout_seconds)
    return accepted(retry_and_continue.retry_run(ports, run, body.parameters, by, changes))


def continue_run(
    ports: RunPorts, run: RunName, by: Person, body: Changes = NO_CHANGES
) -> Annotated[Reply, {202: Accepted}]:
    return accepted(retry_and_continue.continue_run(ports, run, body.parameters, *by))


def note_run(ports: ClusterPorts, run: RunName, body: NoteRequest, by: Person) -> Annotated[Json, RunAnswer]:
    notes_and_tags.add_note(ports.runs, ports.clock, run, body.text.strip(), by)
    return queries.run(ports, run)


def tag_run(ports: ClusterPorts, run: RunName, body: TagsRequest, by: Person) -> Annotated[Json, RunAnswer]:
    notes_and_tags.change_tags(ports, run, body.set, body.remove, by)
    return queries.run(ports, run)
