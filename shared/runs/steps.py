"""The one way in which a run's state is written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from shared.kernel.errors import Changed
from shared.kernel.stored import Stored
from shared.runs.decide import advance, is_over
from shared.runs.model import Run, RunState
from shared.system import ARCHIVES, System

log = logging.getLogger(__name__)

WRITE_ATTEMPTS = 10


def step(
    system: System, run: Stored[Run], state: RunState, why: str, facts: dict[str, Any] | None = None
) -> Stored[Run]:
    """Write the step, with further fields, if the table allows it. Raises Changed if the row is another by now."""
    changes = advance(run.value, state, system.clock(), why) | (facts or {})
    after = system.runs.update(run, **changes) if changes else run
    if after.value.state is not run.value.state:
        log.info("run %s: %s -> %s %s", run.value.name, run.value.state, after.value.state, why.partition("\n")[0])
        send_to_archive(system, after.value)
    return after


def apply(
    system: System, name: str, state: RunState, why: str, facts: Callable[[Run], dict[str, Any]] | None = None
) -> Stored[Run]:
    """Take one step of our own, with further fields of the row as it is then. If events were quicker, only these."""
    for _ in range(WRITE_ATTEMPTS):
        try:
            stored = system.runs.get(name)
            return step(system, stored, state, why, facts(stored.value) if facts else None)
        except Changed:
            continue
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while it went to {state}.")


def send_to_archive(system: System, run: Run) -> None:
    if is_over(run) and run.archived_at is None:
        system.queues.send(ARCHIVES, {"run": run.name})
