"""Warn of runs beyond their time limit, of runs with a finding of a feature, and of repeatedly evicted runs."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta

from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import TrainyardError
from shared.kernel.versioned import Stored
from shared.runs.codes import CancelCode
from shared.runs.decide import preemptions
from shared.runs.features import RunFinding, findings
from shared.runs.intake.retry_and_continue import move_run
from shared.runs.model import Run, RunState, Warned
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.cancel import cancel_run
from shared.runs.progress.workloads import workload
from shared.runs.views.run_list import in_state

log = logging.getLogger(__name__)
NONE = RunFinding("")


def watch(ports: RunPorts, live: Collection[RunState]) -> dict[str, list[str]]:
    """Cancel runs past their time limit, and runs with a final finding of a feature. Return warnings by cluster.

    `live` are the states that have runs; runs in other states are not read.
    """
    warnings: dict[str, list[str]] = defaultdict(list)
    running = [run for run in _in_state(ports.runs, RunState.RUNNING, live) if run.cancel.asked_at is None]
    found = findings(ports, running)
    for run in running:
        try:
            words = workload(run).overdue(run, ports.clock())
        except TrainyardError as exc:
            log.warning("run %s is not watched: %s", run.name, exc)
            continue
        finding = RunFinding(words, CancelCode.TIME_LIMIT) if words else found.get(run.name)
        if finding:
            warnings[run.asked.cluster].append(f"Run {run.name}: {finding.words}")
            if finding.cancels and not ports.rules.dry_run:
                cancel_run(ports, run.name, finding.words, code=finding.cancels)
        _record(ports.runs, ports.clock, run, found.get(run.name, NONE))
    return warnings


def _record(runs: Runs, clock: Clock, run: Run, finding: RunFinding) -> None:
    """Write a new warning into the run's row, or remove one that no longer holds. A changed figure is not written."""
    if run.warned.warning == finding.word:
        return

    def write(stored: Stored[Run]) -> None:
        runs.update(stored, replace(stored.value, warned=Warned(finding.word, finding.words)))

    try:
        compare_and_set(clock, f"Run {run.name}", lambda: runs.get(run.name), write)
    except TrainyardError as exc:
        log.warning("the warning of run %s is not recorded: %s", run.name, exc)


def move(ports: RunPorts, live: Collection[RunState]) -> dict[str, list[str]]:
    """Move repeatedly evicted runs to the other cluster of their route. Return warnings by cluster."""
    warnings: dict[str, list[str]] = defaultdict(list)
    moves = any(route.move_to for route in ports.routes.values())
    for run in _in_state(ports.runs, RunState.QUEUED, live) if moves else ():
        route = ports.routes.get(run.asked.route)
        if route is None or not route.move_to or run.cancel.asked_at or run.asked.cluster == route.move_to:
            continue
        if run.is_steered or not workload(run).can_move:
            continue
        lost = preemptions(run, ports.clock() - timedelta(seconds=route.move_within_seconds))
        if lost < route.move_after:
            continue
        why = f"It lost its nodes {lost} times within {route.move_within_seconds / 3600:g} h."
        try:
            moved = "would move" if ports.rules.dry_run else move_run(ports, run.name, route.move_to, why).name
            warnings[run.asked.cluster].append(f"Run {run.name}: {why} It continues on {route.move_to}: {moved}.")
        except TrainyardError as exc:
            log.warning("run %s can't move: %s", run.name, exc)
            warnings[run.asked.cluster].append(f"Run {run.name}: {why} It can't move to {route.move_to}: {exc}")
    return warnings


def _in_state(runs: Runs, state: RunState, live: Collection[RunState]) -> Iterable[Run]:
    return in_state(runs, state) if state in live else ()
