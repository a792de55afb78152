"""Successive runs share checkpoints and metrics in the first run's folder: find the other runs of the chain."""

from __future__ import annotations

from collections.abc import Iterator

from shared.jobs.location import Location
from shared.removals.model import RemovalKind
from shared.runs.find_run import find_run
from shared.runs.model import Run
from shared.runs.names import asked_run_name
from shared.runs.ports import Runs

_LONGEST = 1000  # runs; each costs one read


def later(runs: Runs, run: Run) -> list[Run]:
    """Return the successors of this run, in order."""
    chain: list[Run] = []
    while len(chain) < _LONGEST and (following := _next(runs, (chain or [run])[-1])):
        chain.append(following)
    return chain


def earlier(runs: Runs, run: Run) -> list[Run]:
    """Return the predecessors of this run, latest first."""
    chain: list[Run] = []
    while len(chain) < _LONGEST and (before := find_run(runs, (chain or [run])[-1].asked.continues)):
        chain.append(before)
    return chain


def own_paths(runs: Runs, what: RemovalKind, run: Run) -> set[Location]:
    """Return the output paths to delete with this run: the run's own outputs, and outputs needed only by this run.

    When checkpoints are removed, only later runs count as users, because earlier runs no longer need them.
    """
    before, after = earlier(runs, run), later(runs, run)
    folders = [f"/trainyard/{each.name}/" for each in (*before, run, *after)]
    users = after if what is RemovalKind.CHECKPOINTS else [*before, *after]
    needed = {path for user in users if _keeps(user, what) for path in _paths(user)}
    return {path for path in _paths(run) if path not in needed and any(folder in f"/{path.path}" for folder in folders)}


def _keeps(run: Run, what: RemovalKind) -> bool:
    return run.removed.at is None and str(what) not in run.removed.cleared


def _paths(run: Run) -> Iterator[Location]:
    yield from (output.path for output in run.asked.request.outputs.values() if isinstance(output.path, Location))


def _next(runs: Runs, run: Run) -> Run | None:
    routes = dict.fromkeys(("", run.asked.route))  # an older version left out the route
    names = (asked_run_name(kind, run.name, route) for kind in ("continue", "move") for route in routes)
    return next((following_run for name in names if (following_run := find_run(runs, name))), None)
