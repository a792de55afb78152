"""The only writer of a run's state."""

from __future__ import annotations

import logging
from collections.abc import Callable

from shared.kernel import measure
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.storage import Queues
from shared.kernel.versioned import Stored
from shared.runs.decide import advance, is_over
from shared.runs.facts import RunEnded, RunStarted
from shared.runs.messages import ArchiveRun, SubmitRun
from shared.runs.model import Run, RunState
from shared.runs.ports import RunPorts

log = logging.getLogger(__name__)


def write_transition(ports: RunPorts, run: Stored[Run], changed: Run) -> Stored[Run]:
    """Write the changed run, and publish the facts that follow. Raises Changed if the row changed meanwhile."""
    after = ports.runs.update(run, changed) if changed != run.value else run
    if after.value.progress.state is not run.value.progress.state:
        why = after.value.progress.history[-1].why.partition("\n")[0]
        log.info("run %s: %s -> %s %s", run.value.name, run.value.progress.state, after.value.progress.state, why)
        history = after.value.progress.history
        for moment in history[len(run.value.progress.history) :] or history[-1:]:
            measure.count("runs", state=moment.state.value)
        if is_over(after.value):
            ports.happened(RunEnded(after.value))
        elif after.value.progress.state is RunState.RUNNING:
            ports.happened(RunStarted(after.value))
    return after


def transition(
    ports: RunPorts, name: str, state: RunState, why: str, also: Callable[[Run], Run] | None = None
) -> Stored[Run]:
    """Move the run to a state, if the table allows it. `also` makes further changes to the newest row."""

    def write(stored: Stored[Run]) -> Stored[Run]:
        changed = also(stored.value) if also else stored.value
        return write_transition(ports, stored, advance(changed, state, ports.clock(), why))

    runs = ports.runs
    return compare_and_set(ports.clock, f"Run {name}", lambda: runs.get(name), write, first=lambda: runs.recent(name))


def ask_for_submission(queues: Queues, run: Run, delay: float = 0.0) -> None:
    queues.send(SubmitRun(run.name, run.asked.drop), delay)


def ask_for_archive(queues: Queues, run: str) -> None:
    queues.send(ArchiveRun(run))
