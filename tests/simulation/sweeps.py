"""People who request sweeps, trials that report their metric, and the rules for a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from zlib import crc32

from shared.adapters.sweeps.studies import JournalStudies
from shared.kernel.places import OUTPUT_CONTAINER
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest, SweepRequest
from shared.runs.model import FINAL, Run, RunState
from shared.runs.names import run_of_job
from shared.runs.results.outputs import archive_folder
from shared.sweeps.model import SweepSummary, TrialState
from shared.sweeps.ports import STUDIES
from shared.system import System
from tests.fakes.storage import FakeBlobs
from tests.fakes.sweeps import MemoryJournal, standing_of, studies, sweep_of
from tests.fakes.world import World
from tests.simulation.ports import Port
from tests.simulation.rules import DATA, Actions, Rules
from tests.simulation.scheduler import Violation, check

METRIC = "test_accuracy"
SPACE: dict[str, bool | int | float | str] = {"epochs": "2,3,4,5,6,7"}


def ask(simulation: Any) -> None:
    """Request one of three sweeps, perhaps once more."""
    random = simulation.random
    key, stop = random.choice((("p", None), ("q", "asha"), ("r", "median_stopping")))
    sweep = SweepRequest(METRIC, trials=6, at_once=3, stop=stop, sampling="random" if stop else "grid")
    request = RunRequest(template="mnist", data=DATA, parameters=SPACE, sweep=sweep)
    simulation.host.call("create_run", partial(create.create_run, simulation.system, request, key))


def tell(simulation: Any) -> None:
    """Let each running trial report its metric: close to its earlier values, so that some trials lose."""
    world: World = simulation.world
    running = {run_of_job(job) for job in simulation.jobs.live() if world.jobs.jobs[job].raw == "Running"}
    for name in sorted(name for name in running if sweep_of(world.runs.rows[name].value)):
        good, count = crc32(name.encode()) / 2**32, simulation.random.choice((1, 2, 3))
        values = [0.9 * good + 0.1 * simulation.random.random() for _ in range(count)]
        _write(world.blobs, name, [*told(world, name), *values])
        simulation.note("TOLD", (name, values))


def ended(world: World, run: Run, values: list[float]) -> None:
    """Write the metrics of a trial that has ended: its reported values, at least one."""
    _write(world.blobs, run.name, values or [0.5])


def told(world: World, trial: str) -> list[float]:
    """Return the values that a trial reported, in order."""
    blob = world.blobs.containers.get("azureml-blobstore", {}).get(_metrics(trial))
    return [json.loads(line)[METRIC] for line in blob.data.splitlines()] if blob else []


def check_begun(world: World, trial: Run) -> None:
    """Check that a new trial is within the requested number and has a free slot."""
    sweep = world.runs.rows[sweep_of(trial)].value
    asked = sweep.asked.request.sweep
    if asked is None:
        raise Violation(f"run {trial.name} is a trial of {sweep.name}, which is no sweep")
    trials = _trials(world, sweep.name)
    check(len(trials) <= asked.most_trials, f"sweep {sweep.name} has {len(trials)} of {asked.most_trials} trials")
    live = [run.name for run in trials if run.progress.state not in FINAL]
    check(len(live) <= asked.at_once, f"trials {live} of a sweep run, {asked.at_once} may at once")


def check_ended(world: World) -> None:
    """Check that a finished sweep has no more trials than its study, no live trial, and the best trial's archive."""
    for sweep in [row.value for row in world.runs.rows.values() if row.value.feature(SweepSummary) is not None]:
        trials, asked = {run.name: run for run in _trials(world, sweep.name)}, sweep.asked.request.sweep
        assert asked is not None
        study = [trial for trial in studies(world.journals).trials(sweep.name, asked) if trial.own]
        check(len(trials) <= len(study), f"sweep {sweep.name} has runs {sorted(trials)}, its study {study}")
        standing = standing_of(sweep)
        if sweep.progress.state is not RunState.COMPLETED:
            continue
        lost = [trial.number for trial in study if trial.state is TrialState.RUNNING]
        check(not lost, f"sweep {sweep.name} is completed, and its study waits for trials {lost}")
        check(len(trials) == asked.most_trials or standing.closing, f"sweep {sweep.name} made {len(trials)} trials")
        completed = {name: max(told(world, name)) for name, run in trials.items() if _completed(run)}
        check(standing.best in completed, f"the best of sweep {sweep.name} is {standing.best}; {completed}")
        best = max(completed.values())
        check(completed[standing.best] == best, f"{standing.best} is no best of sweep {sweep.name}: {completed}")
        check(standing.best_value == best, f"sweep {sweep.name} says {standing.best_value}: {completed}")
        _check_archive(world, sweep, trials[standing.best])


def _check_archive(world: World, sweep: Run, best: Run) -> None:
    if sweep.archive.at is None or best.archive.at is None:
        return
    model = "models/model.pt"
    there = world.blobs.containers[OUTPUT_CONTAINER]
    check(f"{archive_folder(sweep)}/{model}" in there, f"sweep {sweep.name} is archived without a model")
    same = there[f"{archive_folder(sweep)}/{model}"].data == there[f"{archive_folder(best)}/{model}"].data
    check(same, f"the archive of sweep {sweep.name} is not that of its best trial {best.name}")


def _completed(run: Run) -> bool:
    return run.progress.state is RunState.COMPLETED


def _trials(world: World, sweep: str) -> list[Run]:
    return [row.value for row in world.runs.rows.values() if sweep_of(row.value) == sweep]


def _write(blobs: FakeBlobs, trial: str, values: list[float]) -> None:
    lines = (json.dumps({"step": step, METRIC: value}) for step, value in enumerate(values, 1))
    blobs.put("azureml-blobstore", _metrics(trial), "".join(f"{line}\n" for line in lines).encode())


def _metrics(trial: str) -> str:
    return f"trainyard/{trial}/metrics/metrics.jsonl"


def _studies_behind_faults(simulation: Any) -> JournalStudies:
    journals = simulation.world.journals
    return JournalStudies(lambda name: Port("journals", journals.setdefault(name, MemoryJournal()), simulation))


class SweepRules(Rules):
    also = "sweeps"

    def start(self, simulation: Any) -> None:
        """Make the trials long enough to be compared."""
        simulation.fates = ("Running",) * 8 + simulation.fates
        if simulation.random.random() < 0.3:
            simulation.faults.slow_at = ("journals", "append_at")
        simulation.kept_studies = _studies_behind_faults(simulation)

    def actions(self, simulation: Any) -> Actions:
        return [(partial(ask, simulation), 0.5), (partial(tell, simulation), 8.0)]

    def begun(self, world: World, run: Run) -> bool:
        if is_trial := bool(sweep_of(run)):
            check_begun(world, run)
        return is_trial

    def healed(self, simulation: Any) -> None:
        check_ended(simulation.world)

    def goes(self, world: World, run: Run, raw: str, go: Callable[[], None]) -> None:
        told_before = told(world, run.name) if sweep_of(run) else []
        go()
        if sweep_of(run) and raw in ("Completed", "Failed"):
            ended(world, run, told_before)

    def system(self, simulation: Any) -> System:
        """Return the system of a process that has cached the sweeps' studies, or of one that has read none yet."""
        kept = simulation.random.random() < 0.5
        studies = simulation.kept_studies if kept else _studies_behind_faults(simulation)
        system: System = replace(simulation.system, features={**simulation.system.features, STUDIES.name: studies})
        return system

    def count(self, run: Run) -> dict[str, int]:
        if not sweep_of(run) and run.feature(SweepSummary) is None:
            return {}
        kind = "trials" if sweep_of(run) else "sweeps"
        return {f"{kind} {run.progress.state}": 1, "trials that lost": "at interval" in run.cancel.why}


RULES = SweepRules()
