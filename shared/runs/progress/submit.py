"""Submit a run to Azure ML, or cancel the run."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from shared.jobs.location import Asset
from shared.jobs.ports import Jobs, WorkspacePorts
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import Environment
from shared.kernel.errors import BadInput, Conflict
from shared.runs.decide import advance, is_over
from shared.runs.facts import CancelCarriedOut, RunSubmitted
from shared.runs.intake.warm_start import bring_back
from shared.runs.messages import SubmitRun
from shared.runs.model import Run, RunState
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.cancel import give_up
from shared.runs.progress.transitions import ask_for_submission, transition
from shared.runs.progress.workload import Submitted
from shared.runs.progress.workloads import workload

log = logging.getLogger(__name__)


def submit_run(ports: RunPorts, message: SubmitRun) -> None:
    """Submit the run's job (or its members' jobs) to Azure ML under the run's name, or cancel the run on request.

    `job` in the row marks a submitted run. The row's state may be ahead of `job`, because an event may arrive first.
    The event about the submission is queued before the step is written: a lost event could never be recovered, while an
    event that is sent twice has the same id.
    """
    run = _newest(ports.runs, message.run)
    if run.cancel.asked_at is not None:
        _cancel(ports, run)
    elif run.jobs.job:
        return
    elif is_over(run):
        _cancel_unknown_jobs(ports, run)
    elif (priced := _paid_for(ports, run)) and (submitted := _put(ports, priced)):
        _record(ports, priced, submitted)


def _newest(runs: Runs, name: str) -> Run:
    """The run. A received run may come from the cache, because a cancel is also noticed after the submission."""
    run = runs.recent(name).value
    return run if run.progress.state is RunState.RECEIVED and not run.jobs.job else runs.get(name).value


def _cancel_unknown_jobs(ports: WorkspacePorts, run: Run) -> None:
    """Cancel jobs of a failed run from a concurrent, failed submission: no row names these jobs."""
    if _has_jobs(ports.jobs, run):
        ports.happened(RunSubmitted(run))
    workload(run).cancel(ports, run)


def _paid_for(ports: RunPorts, run: Run) -> Run | None:
    """The run with its price, if the budget allows the run. None if the run failed or continues in a later message."""
    try:
        if not bring_back(ports, run):
            log.info("run %s: the copy of the model that it starts from continues in the next message", run.name)
            ask_for_submission(ports.queues, run, 1.0)
            return None
        priced = ports.admission.priced(run)
        ports.admission.admit(priced)
    except (BadInput, Conflict) as exc:
        give_up(ports, run, str(exc))
        return None
    return priced


def _put(ports: RunPorts, run: Run) -> Submitted | None:
    """Submit the run's jobs to Azure ML; None if the run has ended."""
    try:
        submitted = workload(run).submit(ports, run)
    except BadInput as exc:
        if _has_jobs(ports.jobs, run):  # Azure ML accepted some members' jobs
            ports.happened(RunSubmitted(run))
        give_up(ports, run, f"The job could not be submitted. {exc}")
        return None
    if not submitted.jobs and workload(run).jobs(run):  # the run ended before any of its jobs was sent
        _cancel_unknown_jobs(ports, ports.runs.get(run.name).value)
        return None
    ports.happened(RunSubmitted(run))
    return submitted


def _record(ports: RunPorts, run: Run, submitted: Submitted) -> None:
    """Record the submission. If the run was canceled in the meantime, cancel the run's jobs."""
    ids, priced = submitted.ids, run.money
    environment = _environment(ids.environment or run.asked.request.environment)

    def submitted_run(fresh: Run) -> Run:
        jobs = replace(fresh.jobs, job=run.name, code=ids.code_digest, environment=environment)
        after = replace(fresh, jobs=jobs, money=replace(priced, cost=fresh.money.cost))
        return _what_came_of_it(after, submitted, ports.clock())

    after = transition(ports, run.name, RunState.SUBMITTED, "", submitted_run).value
    if after.cancel.asked_at is not None or is_over(after):
        _cancel(ports, after)


def _environment(named: str | Asset | Environment) -> str:
    """The environment's text in a row; a registered environment has the form in which jobs name it."""
    return str(named) if isinstance(named, Environment) else place_text(named)


def _what_came_of_it(run: Run, submitted: Submitted, now: datetime) -> Run:
    """The run with the submitted jobs; its state is queued if the jobs already wait for nodes."""
    run = workload(run).after_submission(run, submitted.jobs)
    after = advance(run, RunState.SUBMITTED, now)
    return advance(after, RunState.QUEUED, now) if after is not run and submitted.queued else after


def _cancel(ports: RunPorts, run: Run) -> None:
    """Cancel the run's jobs. A run without a submitted job ends here; otherwise the end of its job ends the run.

    This applies to an ended run too: its job may have been submitted just after the cancel. The submitter may have
    crashed before recording the job, so Azure ML is asked whether it exists.
    """
    how = workload(run)
    sent = bool(run.jobs.job) or _has_jobs(ports.jobs, run)
    if sent and not run.jobs.job:
        ports.happened(RunSubmitted(run))
    if run.progress.state is RunState.RECEIVED and not sent:
        transition(ports, run.name, RunState.CANCELED, run.cancel.why or "Canceled before its job was submitted.")
    how.cancel(ports, run)
    ports.happened(CancelCarriedOut(run))


def _has_jobs(jobs: Jobs, run: Run) -> bool:
    return any(jobs.status(job) for job in workload(run).live_jobs(run))
