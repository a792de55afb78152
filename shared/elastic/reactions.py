"""Reactions of elastic runs to facts about runs."""

from __future__ import annotations

from shared.elastic.model import Elastic
from shared.elastic.ports import RENDEZVOUS
from shared.runs import facts as runs
from shared.runs.model import RunState
from shared.runs.ports import RunPorts


def close_rendezvous(ports: RunPorts, fact: runs.RunEnded | runs.RunArchived) -> None:
    """Close the rendezvous of a canceled or failed run: a member that starts late exits at once.

    The members of a completed run close their rendezvous themselves.
    """
    run = fact.run
    if run.feature(Elastic) and run.progress.state in (RunState.CANCELED, RunState.FAILED):
        ports.store(RENDEZVOUS).close(run.name, f"the run is {run.progress.state.value}")
