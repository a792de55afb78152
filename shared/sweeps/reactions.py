"""What follows for sweeps from what happens to runs."""

from __future__ import annotations

from shared.kernel.has import HasQueues
from shared.runs import facts as runs
from shared.sweeps.ask import ask_for_look_of_trial, ask_for_sweep_look
from shared.sweeps.model import Standing, TrialOf


def look_at_sweep(ports: HasQueues, fact: runs.RunSubmitted | runs.CancelCarriedOut | runs.RunReconciled) -> None:
    """A sweep begins, is to end, or may have lost its next look."""
    if fact.run.feature(Standing):
        ask_for_sweep_look(ports.queues, fact.run)


def look_at_its_sweep(ports: HasQueues, fact: runs.RunStarted | runs.RunEnded) -> None:
    """A trial says something of its sweep."""
    if trial := fact.run.feature(TrialOf):
        ask_for_look_of_trial(ports.queues, trial.sweep)
