"""The one way in which a run's state is written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from shared.clusters.lease_actions import keep_warm
from shared.kernel import measure
from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from shared.runs.decide import advance, is_over
from shared.runs.model import FINAL, Run, RunState
from shared.system import ARCHIVES, CLUSTER_LOOKS, System

log = logging.getLogger(__name__)

WRITE_ATTEMPTS = 10
LOOK_SECONDS = 5.0  # a thousand runs that end together cost one look at their cluster
TELLING = FINAL | {RunState.RUNNING}  # at these steps nodes come into use, or get free


def step(
    system: System, run: Stored[Run], state: RunState, why: str, facts: dict[str, Any] | None = None
) -> Stored[Run]:
    """Write the step, with further fields, if the table allows it. Raises Changed if the row is another by now."""
    return take(system, run, advance(run.value, state, system.clock(), why) | (facts or {}))


def take(system: System, run: Stored[Run], changes: dict[str, Any]) -> Stored[Run]:
    """Write these changes, which may be a step, and do what the step asks for. Raises Changed as `step` does."""
    after = system.runs.update(run, **changes) if changes else run
    if after.value.state is not run.value.state:
        why = after.value.history[-1].why.partition("\n")[0]
        log.info("run %s: %s -> %s %s", run.value.name, run.value.state, after.value.state, why)
        for moment in after.value.history[len(run.value.history) :] or after.value.history[-1:]:
            measure.count("runs", state=moment.state.value)
        send_to_archive(system, after.value)
        if is_over(after.value) and after.value.keep_warm_seconds and after.value.job:
            keep_warm(system, after.value)
        if after.value.state in TELLING:
            look_at_cluster(system, after.value.cluster)
    return after


def apply(
    system: System, name: str, state: RunState, why: str, facts: Callable[[Run], dict[str, Any]] | None = None
) -> Stored[Run]:
    """Take one step of our own, with further fields of the row as it is then. If events were quicker, only these."""
    for attempt in range(WRITE_ATTEMPTS):
        try:
            stored = system.runs.get(name) if attempt else system.runs.recent(name)
            return step(system, stored, state, why, facts(stored.value) if facts else None)
        except Changed:
            continue
    raise Changed(f"Run {name} changed {WRITE_ATTEMPTS} times while it went to {state}.")


def look_at_cluster(system: System, cluster: str) -> None:
    """Ask for a look at the cluster in some seconds, unless one that comes as late was asked for already."""
    if system.sweeps.claim_look(cluster, system.clock(), LOOK_SECONDS):
        system.queues.send(CLUSTER_LOOKS, {"cluster": cluster}, LOOK_SECONDS)


def send_to_archive(system: System, run: Run) -> None:
    if is_over(run) and run.archived_at is None:
        system.queues.send(ARCHIVES, {"run": run.name})
