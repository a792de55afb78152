"""The run of a trial: the sweep's job with the trial's drawn values. The name of the run prevents a second record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.jobs.spec import JobSpec, again
from shared.runs.intake.from_job import run_of
from shared.runs.model import Moment, Run, RunState
from shared.runs.progress.workloads import workload
from shared.sweeps.model import TrialOf, trial_run
from shared.sweeps.sampling import Draw, values

SWEEP_TAG = "trainyard.sweep"  # tag of a trial's run, by which lists find it; users may not write this tag


def run_of_trial(parent: Run, number: int, drawn: Draw, at: datetime) -> Run:
    """The first record of a trial's run."""
    job = _job(parent, number, drawn)
    run = run_of(job.name, job, workload(parent).bounds(parent), at)
    run = run.having(TrialOf(parent.name))
    return replace(
        run,
        asked=replace(
            run.asked,
            drop=parent.asked.drop,
            route=parent.asked.route,
            fingerprint=parent.asked.fingerprint,
            experiment=parent.asked.experiment,
            generation=parent.asked.generation,
            from_run=parent.asked.from_run,
            digest=parent.name,
        ),
        money=replace(run.money, project=parent.money.project),
        people=replace(
            run.people,
            owner=parent.people.owner,
            owner_id=parent.people.owner_id,
            tags={**parent.people.tags, SWEEP_TAG: parent.name},
        ),
        progress=replace(
            run.progress, history=(Moment(RunState.RECEIVED, at, f"Trial {number} of sweep {parent.name}."),)
        ),
    )


def _job(parent: Run, number: int, drawn: Draw) -> JobSpec:
    request = parent.asked.request
    assert request.sweep is not None
    job = again(request, parent.name, trial_run(parent.name, number), SWEEP_TAG)
    title = f"{job.title or parent.name} (trial {number})"
    return replace(job, sweep=None, title=title, inputs={**job.inputs, **values(request.sweep, drawn)})
