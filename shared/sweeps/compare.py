"""The runs to compare if a request names a sweep alone."""

from __future__ import annotations

from shared.runs.ports import RunFilter, RunPorts
from shared.sweeps.trial_run import SWEEP_TAG

MOST = 1000  # trials of a sweep


def trials_to_compare(ports: RunPorts, name: str) -> list[str]:
    """The trials of a sweep with reported values, best first, or the newest trials; none for another run."""
    sweep = ports.runs.get(name).value.asked.request.sweep
    if sweep is None:
        return []
    metric, highest = sweep.metric, sweep.maximize
    trials = ports.runs.page(RunFilter(tag=f"{SWEEP_TAG}={name}"), MOST).runs
    measured = [run for run in trials if metric in run.measured.best]
    measured.sort(key=lambda run: run.measured.best[metric], reverse=highest)
    return [run.name for run in (measured or trials)]
