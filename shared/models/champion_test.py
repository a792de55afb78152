"""Test the champion on the challenger's data: a run of the challenger's job, with the challenger's code and
environment, starts from the champion's model and only tests.

The test has its own experiment, so that `mnist@latest` and `mnist@best:accuracy` never resolve to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.drops.ports import DropPorts
from shared.jobs.places import starting_from
from shared.jobs.spec import JobSpec, again
from shared.kernel.errors import Conflict, Impossible
from shared.models import reproduce
from shared.models.model import Version
from shared.models.why import data_changes
from shared.runs.find_run import find_run
from shared.runs.intake.from_job import run_of
from shared.runs.intake.insert_run import record
from shared.runs.intake.warm_start import model_of
from shared.runs.model import Moment, Run, RunState
from shared.runs.names import asked_run_name
from shared.runs.ports import RunPorts
from shared.runs.progress.workloads import workload

TESTS_FOR = "trainyard.tests_champion_for"  # the tag of a test's job; its value is the challenger


def challenger_of(run: Run) -> str:
    """Return the challenger for which this run tests a champion; '' for any other run."""
    return run.asked.request.tags.get(TESTS_FOR, "")


def test_of(ports: DropPorts, champion: Version, challenger: Run, parameters: dict[str, Any]) -> Run:
    """Return the run for testing the champion on the challenger's data. A repeat returns the existing run.

    Raises Conflict if the data changed since or the budget is used up, Impossible if the model no longer exists.
    """
    name = asked_run_name("test", f"{champion} {champion.digest} {challenger.name}")
    if existing := find_run(ports.runs, name):
        return existing
    if changes := data_changes(ports, challenger):
        raise Conflict(f"The data of run {challenger.name} have changed: {changes}.", "altered")
    job = _job(ports, name, champion, challenger, parameters)
    now = ports.clock()
    run = run_of(name, job, workload(challenger).bounds(challenger), now)
    run = replace(
        run,
        asked=replace(run.asked, from_run=champion.run),
        progress=replace(
            run.progress,
            history=(Moment(RunState.RECEIVED, now, f"Tests {champion} on the data of run {challenger.name}."),),
        ),
        money=replace(run.money, project=challenger.money.project),
    )
    return record(ports, run)


def _job(ports: RunPorts, name: str, champion: Version, challenger: Run, parameters: dict[str, Any]) -> JobSpec:
    job = again(challenger.asked.request, challenger.name, name, TESTS_FOR)
    job = reproduce.as_it_ran(ports.jobs, challenger, replace(job, inputs={**job.inputs, **parameters}))
    job, problems = starting_from(job, model_of(ports, champion.run))
    for problem in problems:
        raise Impossible(f"It {problem.message}", problem.code)
    return replace(job, experiment=f"{challenger.asked.experiment}-tests")
