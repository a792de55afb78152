"""The HTTP API's view of a sweep's trials, from the study and the trials' runs."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.kernel.errors import Impossible
from shared.runs.intake.request import RunName
from shared.runs.model import RunState
from shared.runs.ports import RunFilter, RunPorts
from shared.sweeps.importance import importance
from shared.sweeps.model import TrialState, trial_run
from shared.sweeps.ports import STUDIES
from shared.sweeps.sampling import values
from shared.sweeps.trial_run import SWEEP_TAG

MOST = 1000


_STATES = {
    TrialState.RUNNING: RunState.RUNNING,
    TrialState.COMPLETED: RunState.COMPLETED,
    TrialState.STOPPED: RunState.CANCELED,
    TrialState.FAILED: RunState.FAILED,
}


class TrialAnswer(Struct):
    number: int
    run: Annotated[str, Meta(description="'' for one that somebody asked for in the study, and tells themselves.")]
    state: RunState
    parameters: dict[str, Any]
    told: Annotated[float | None, Meta(description="Its best value of the sweep's metric; null before the first.")]
    of_model: Annotated[float | None, Meta(description="The value of the model it left; null before its archive.")]
    dollars: float


class Trials(Struct):
    metric: str
    maximize: bool
    trials: list[TrialAnswer]
    importance: Annotated[
        dict[str, float], Meta(description="The part of each parameter in what is good; empty while trials are few.")
    ]


def list_trials(ports: RunPorts, run: RunName) -> Annotated[dict[str, Any], Trials]:
    """A sweep's trials in order. Raises NotFound, and Impossible for a run that is not a sweep."""
    sweep = ports.runs.get(run).value.asked.request.sweep
    if sweep is None:
        raise Impossible(f"Run {run} is not a sweep, so it has no trials.", "no_sweep")
    drawn = ports.store(STUDIES).trials(run, sweep)
    records = {each.name: each for each in ports.runs.page(RunFilter(tag=f"{SWEEP_TAG}={run}"), MOST).runs}
    rows = []
    for trial in drawn:
        its = trial_run(run, trial.number) if trial.own else ""
        record = records.get(its)
        rows.append(
            {
                "number": trial.number,
                "run": its,
                "state": record.progress.state if record else RunState.RECEIVED if trial.own else _STATES[trial.state],
                "parameters": values(sweep, dict(trial.drawn)),
                "told": trial.best(sweep.maximize),
                "of_model": record.measured.of_model.get(sweep.metric) if record else None,
                "dollars": record.money.cost.dollars if record and record.money.cost else 0.0,
            }
        )
    return {"metric": sweep.metric, "maximize": sweep.maximize, "trials": rows, "importance": importance(sweep, drawn)}
