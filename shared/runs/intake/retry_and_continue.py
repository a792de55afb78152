"""Make runs from ended runs: retry a run, perhaps with other parameters, or continue a training."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shared.jobs.downloads import out_of_reach
from shared.jobs.limits import Limits, over_limits
from shared.jobs.parameters import (
    Parameters,
    all_converted,
    bad_values,
    parameters,
    unknown_names,
    unquoted,
)
from shared.jobs.ports import Jobs
from shared.jobs.readers.trainer import has_command, trainer_names, trainer_template
from shared.jobs.route import Routes
from shared.jobs.spec import JobOutput, JobSpec, Layer, again
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible
from shared.kernel.person import NOBODY, Person
from shared.kernel.storage import Blobs
from shared.runs.codes import CancelCode
from shared.runs.decide import is_over
from shared.runs.features import with_data
from shared.runs.find_run import find_run
from shared.runs.intake.from_job import run_of
from shared.runs.intake.insert_run import name_with_route, record
from shared.runs.intake.job_lifetime import within_lifetime
from shared.runs.intake.parse_request import content_of
from shared.runs.intake.warm_start import model_of
from shared.runs.model import Moment, Run, RunState
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.cancel import cancel_run
from shared.runs.progress.workloads import workload

Given = dict[str, Any]
SHARED_OUTPUTS = ("checkpoints", "metrics")  # of a continued run: both runs share one curve and one training


@dataclass(frozen=True)
class JobChanges:
    """Changes of a job besides its parameters. '' and 0 change nothing."""

    cluster: str = ""
    timeout_seconds: int = 0

    def applied(self, job: JobSpec, limits: Limits) -> tuple[JobSpec, Given]:
        """The job with the changes, and those that change a value. Raises Impossible beyond the limits."""
        asked: Given = {"cluster": self.cluster, "timeout_seconds": self.timeout_seconds}
        changed = {name: value for name, value in asked.items() if value and value != getattr(job, name)}
        after = replace(job, **changed)
        problems = list(over_limits(Layer(after), JobSpec(), limits))
        if changed and problems:
            raise Impossible("; ".join(f"{p.path} {p.message}" for p in problems), problems[0].code)
        return after, changed


SAME_JOB = JobChanges()


def retry_run(
    ports: RunPorts, name: str, given: Given | None = None, by: Person = NOBODY, changes: JobChanges = SAME_JOB
) -> Run:
    """Make a new run with the job of an ended run, on the current data and the trainers' current code.

    A run has one retry per set of changes: a repeated request returns the existing retry. Raises Conflict if the run
    has not ended, and Impossible for an unknown parameter, an invalid value, or a change beyond the limits.
    """
    old = _final(ports.runs, name)
    job, changed = _with_parameters(ports.routes, ports.trainers, old.asked.request, given or {})
    route = ports.routes.get(old.asked.route)
    job, more = changes.applied(job, route.limits if route else ports.limits)
    changed = changed | {f"job.{each}": value for each, value in more.items()}
    _check_start(ports, old)
    _check_downloads(ports, old, job)
    new = name_with_route(ports.runs, "retry", old.asked.route, f"{name} {_text(changed)}" if changed else name)
    why = f"Run {name} is submitted again{_words(changed)}."
    run = _successor(ports, old, again(job, name, new), why)
    run = replace(
        run, asked=replace(run.asked, retry_of=name), people=replace(run.people, owner=by.name, owner_id=by.id)
    )
    return record(ports, run)


def continue_run(ports: RunPorts, name: str, given: Given | None = None, owner: str = "", owner_id: str = "") -> Run:
    """Make a new run that continues from the checkpoint of an ended run; a completed run needs more epochs.

    Both runs write to the same checkpoints and metrics, so a run is continued only once. A repeated request returns the
    existing run; a request with other parameters raises Conflict. Raises Impossible without a checkpoint, or if nothing
    is left to do.
    """
    old = _final(ports.runs, name)
    if old.archive.at is None and old.archiving.gave_up_at is None:
        raise Conflict(f"Run {name} is being archived. Try again in a moment.", "not_archived")
    job, changed = _with_parameters(ports.routes, ports.trainers, old.asked.request, given or {})
    _check_more_to_do(old, changed)
    _check_checkpoint(ports.jobs, ports.blobs, old)
    _check_start(ports, old)
    new, request_digest = (
        name_with_route(ports.runs, "continue", old.asked.route, name),
        hashlib.sha256(_text(changed).encode()).hexdigest(),
    )
    made = find_run(ports.runs, new)
    if made and made.asked.digest != request_digest:
        why = f"Run {name} was continued as {new}, with other parameters. Continue that one."
        raise Conflict(why, "already_continued")
    request = again(job, name, new, "trainyard.continues", SHARED_OUTPUTS)
    why = f"Run {name} continues{_words(changed)}."
    run = _successor(ports, old, request, why)
    run = replace(
        run,
        asked=replace(run.asked, continues=name, digest=request_digest),
        people=replace(run.people, owner=owner, owner_id=owner_id),
    )
    return record(ports, run)


def move_run(ports: RunPorts, name: str, cluster: str, why: str) -> Run:
    """Continue a run as a new run on another cluster, from its checkpoints, and cancel the old run.

    A repeat returns the same new run. The new run is recorded first, with its own price, charged to its project's
    budget. Raises Conflict if the budget is too small; the old run then stays where it is.
    """
    old = ports.runs.get(name).value
    new = name_with_route(ports.runs, "move", old.asked.route, name)
    request = replace(again(old.asked.request, name, new, "trainyard.continues", SHARED_OUTPUTS), cluster=cluster)
    successor = _successor(ports, old, request, f"Run {name} continues here. {why}")
    made = record(
        ports,
        replace(
            successor,
            asked=replace(successor.asked, continues=name),
            people=replace(successor.people, owner=old.people.owner, owner_id=old.people.owner_id),
        ),
    )
    price = (
        f", at ${made.money.price:.2f} an hour a node instead of ${old.money.price:.2f}"
        if made.money.price and old.money.price
        else ""
    )
    cancel_run(ports, name, f"{why} It continues as run {new} on {cluster}{price}.", code=CancelCode.MOVED)
    return made


def _final(runs: Runs, name: str) -> Run:
    old = runs.get(name).value
    if not is_over(old):
        raise Conflict(f"Run {name} is {old.progress.state}. Cancel it first, or wait for its end.", "not_final")
    return old


def _successor(ports: RunPorts, old: Run, request: JobSpec, why: str) -> Run:
    now = ports.clock()
    request, shorter = within_lifetime(ports.capacity, request)
    fingerprint, generation = content_of(ports.datasets, DropKey.of(old.asked.drop)) if old.asked.drop else ("", 0)
    run = run_of(request.name, request, workload(old).bounds(old), now)
    successor = replace(
        run,
        asked=replace(
            run.asked,
            drop=old.asked.drop,
            route=old.asked.route,
            fingerprint=fingerprint,
            experiment=old.asked.experiment,
            keep_warm_seconds=old.asked.keep_warm_seconds,
            from_run=old.asked.from_run,
            generation=generation,
        ),
        progress=replace(run.progress, history=(Moment(RunState.RECEIVED, now, f"{why} {shorter}".strip()),)),
        money=replace(run.money, project=ports.admission.project_of(old.asked.request.tags, old.asked.route)),
        people=replace(run.people, tags=old.people.tags),
    )
    return with_data(ports, successor)


def _with_parameters(routes: Routes, trainers: Path, job: JobSpec, given: Given) -> tuple[JobSpec, Given]:
    """The job with these parameters, and the changed parameters."""
    schemas = known_parameters(routes, trainers, job)
    problems = [
        *unknown_names(schemas, given, "parameters"),
        *bad_values(schemas, given, "parameters"),
        *unquoted(given),
    ]
    if problems:
        raise Impossible("; ".join(f"{p.path} {p.message}" for p in problems), problems[0].code)
    changed = {name: value for name, value in all_converted(schemas, given).items() if job.inputs.get(name) != value}
    return replace(job, inputs={**job.inputs, **changed}), changed


def known_parameters(routes: Routes, trainers: Path, job: JobSpec) -> Parameters:
    """The job's literal inputs, described by the trainer or route with the job's command."""
    inferred = parameters(job, {}, "the job")
    described = next((schemas for template, schemas in _templates(routes, trainers) if has_command(job, template)), {})
    return {name: described.get(name, schema) for name, schema in inferred.items()}


def _templates(routes: Routes, trainers: Path) -> list[tuple[JobSpec, Parameters]]:
    own = [trainer_template(trainers, name) for name in trainer_names(trainers)]
    return [*((route.template, route.parameters) for route in routes.values()), *own]


def _check_more_to_do(old: Run, changed: Given) -> None:
    if old.progress.state is not RunState.COMPLETED:
        return
    before, now = old.asked.request.values.get("epochs"), changed.get("epochs")
    if not changed or (isinstance(before, int) and not (isinstance(now, int) and now > before)):
        more = f"more epochs than its {before}" if isinstance(before, int) else "a parameter that extends the work"
        raise Impossible(f"Run {old.name} is completed. Give {more}: -p epochs=N.", "nothing_left")


def _check_checkpoint(jobs: Jobs, blobs: Blobs, old: Run) -> None:
    path = old.asked.request.outputs.get("checkpoints", JobOutput()).path
    if not path:
        raise Impossible(f"The job of run {old.name} has no output checkpoints. Retry it instead.", "no_checkpoint")
    if blobs.first(jobs.place(path)) is None:
        model = (
            f", or start from its model: submit ... --from {old.name}"
            if old.progress.state is RunState.COMPLETED
            else ""
        )
        gone = "was removed" if old.removed.at else "has no checkpoint, or the checkpoint was deleted"
        raise Impossible(f"Run {old.name} {gone}. Retry it{model if not old.removed.at else ''}.", "no_checkpoint")


def _check_start(ports: RunPorts, old: Run) -> None:
    """Raise Impossible if the job's starting model is gone: the job would fail on the nodes."""
    if old.asked.from_run:
        model_of(ports, old.asked.from_run)


def _check_downloads(ports: RunPorts, old: Run, job: JobSpec) -> None:
    """Raise Impossible if the nodes can't download the job's needs. A job that starts from a model downloads
    nothing.
    """
    schemas = {} if old.asked.from_run else known_parameters(ports.routes, ports.trainers, job)
    if problems := list(out_of_reach(ports.jobs, schemas, job)):
        raise Impossible("; ".join(f"{p.path} {p.message}" for p in problems), problems[0].code)


def _text(changed: Given) -> str:
    """A canonical text of the values: a whole number has the same text as 7 and as 7.0."""
    plain = {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in changed.items()}
    return json.dumps(plain, sort_keys=True)


def _words(changed: Given) -> str:
    return " with " + " ".join(f"{name}={value}" for name, value in changed.items()) if changed else ""
