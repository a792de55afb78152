"""What follows for sweeps from what happens to runs."""

from __future__ import annotations

from shared.runs import facts as runs
from shared.sweeps.messages import CheckSweep
from shared.sweeps.model import Standing, TrialOf
from shared.sweeps.ports import SweepPorts


def look_at_sweep(ports: SweepPorts, fact: runs.RunSubmitted | runs.CancelCarriedOut | runs.RunReconciled) -> None:
    """A sweep begins, is to end, or may have lost its next look."""
    if standing := fact.run.feature(Standing):
        ports.queues.send(CheckSweep(fact.run.name, standing.look))


def look_at_its_sweep(ports: SweepPorts, fact: runs.RunStarted | runs.RunEnded) -> None:
    """A trial says something of its sweep, which looks without a number: it asks for no look after it."""
    if trial := fact.run.feature(TrialOf):
        ports.queues.send(CheckSweep(trial.sweep))
