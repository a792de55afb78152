"""Reactions of sweeps to facts about runs."""

from __future__ import annotations

from shared.runs import facts as runs
from shared.runs.ports import RunPorts
from shared.sweeps.messages import CheckSweep
from shared.sweeps.model import SweepSummary, TrialOf


def check_sweep(ports: RunPorts, fact: runs.RunSubmitted | runs.CancelCarriedOut | runs.RunReconciled) -> None:
    """Check a sweep at its start, at its due end, or after a lost check."""
    if standing := fact.run.feature(SweepSummary):
        ports.queues.send(CheckSweep(fact.run.name, standing.look))


def check_sweep_of_trial(ports: RunPorts, fact: runs.RunStarted | runs.RunEnded) -> None:
    """Check the sweep of a trial after a fact. The check has no number, and so queues no further check."""
    if trial := fact.run.feature(TrialOf):
        ports.queues.send(CheckSweep(trial.sweep))
