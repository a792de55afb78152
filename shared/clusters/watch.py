"""What a sweep sees of the runs themselves: those past their time limit, and GPUs that are paid for and do nothing."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from shared.kernel.errors import TrainyardError
from shared.runs.decide import idle_gpus, overdue
from shared.runs.metrics import series
from shared.runs.model import Run, RunState
from shared.runs.ports import RunFilter
from shared.runs.submit import cancel_run
from shared.system import System

log = logging.getLogger(__name__)

UTILIZATION = "gpu_utilization"  # percent; a trainer that writes it is watched
LOOKED_AT = 20  # runs whose metrics one sweep reads; the next reads those after them
QUIET = timedelta(minutes=15)
_PAGE = 1000


def watch(system: System) -> dict[str, list[str]]:
    """Cancel runs past their limit, and those with idle GPUs if that was configured; warnings by cluster."""
    warnings: dict[str, list[str]] = defaultdict(list)
    running = [run for run in _running(system) if run.cancel_asked_at is None]
    due = {run.name for run in _in_rotation(system, running)}
    for run in running:
        try:
            words = overdue(run, system.clock())
            cancels = words is not None
            if words is None and run.name in due and (words := _idle(system, run)):
                cancels = system.rules.cancel_idle_gpus
        except TrainyardError as exc:
            log.warning("run %s is not watched: %s", run.name, exc)
            continue
        if words:
            warnings[run.cluster].append(f"Run {run.name}: {words}")
            if cancels and not system.rules.dry_run:
                cancel_run(system, run.name, words)
    return warnings


def _running(system: System) -> Iterator[Run]:
    token = ""
    while True:
        page = system.runs.page(RunFilter(state=RunState.RUNNING), _PAGE, token)
        yield from page.runs
        if not (token := page.token):
            return


def _in_rotation(system: System, runs: list[Run]) -> list[Run]:
    """Of those that have run for a while, other ones at every sweep."""
    old = [run for run in runs if system.clock() - run.history[-1].at >= QUIET]
    first = int(system.clock().timestamp() // 300) * LOOKED_AT % max(len(old), 1)
    return [*old[first:], *old[:first]][:LOOKED_AT]


def _idle(system: System, run: Run) -> str | None:
    points = series(system, run.name, UTILIZATION).get(UTILIZATION, [])
    return idle_gpus([(value, at) for _, value, at in points], system.clock(), QUIET)
