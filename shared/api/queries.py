"""What a person looks at: drops and runs, as the JSON that the HTTP API answers with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from shared.api import find_name, records
from shared.api.requests import DropsQuery, RunsQuery, read_name, read_time
from shared.clusters.azureml_cache import waiting
from shared.jobs.parameters import resolved
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible, NotFound
from shared.runs.model import Run
from shared.runs.ports import RunFilter
from shared.runs.views.compare import compare
from shared.runs.views.run_filter import condition
from shared.runs.views.summary import value_of
from shared.system import System

MOST_COMPARED = 20


def drop(system: System, route: str, name: str) -> dict[str, Any]:
    """One drop. Raises NotFound, saying which routes there are."""
    stored = system.drops.get(DropKey(route, name))
    if stored is None:
        known = ", ".join(sorted(system.routes))
        raise NotFound(f"No upload to drops/{route}/{name} was seen. Routes: {known}.")
    return records.drop(stored.value)


def drops(system: System, query: DropsQuery) -> list[dict[str, Any]]:
    """Up to a thousand drops by name, of one route or of all, beginning after the drop that the query names."""
    after = DropKey.of(query.after) if query.after else None
    found = system.drops.listed(query.route or None, after, query.limit)
    return [records.drop(record) for record in found]


def run(system: System, name: str) -> dict[str, Any]:
    return told(system, with_parameters(system.runs.get(name).value))


def with_parameters(run: Run) -> Run:
    """The run with its parameters, read from its job where it was recorded before there was a column for them."""
    return run if run.parameters else replace(run, parameters=resolved(run.request))


def told(system: System, run: Run) -> dict[str, Any]:
    """A run, and why it has not started."""
    return records.run(run, waiting(system, run))


def runs(system: System, query: RunsQuery) -> dict[str, Any]:
    """A page of runs, newest first, and what to ask for the next one with. A page may be short and not the last.

    With a condition, a page looks at up to 4,000 runs; `looked_at` says at how many it did.
    """
    page = system.runs.page(run_filter(system, query), query.limit, query.token or "")
    runs = [run for run in page.runs if run.removed_at is None]
    found = {"runs": [told(system, run) for run in runs], "continue": page.token or None}
    return found | {"looked_at": page.looked_at}


def run_filter(system: System, query: RunsQuery) -> RunFilter:
    """What is asked for. Raises Impossible for a condition that can't be read."""
    now = system.clock()
    holds = condition(query.where) if query.where else None
    return RunFilter(
        read_name("experiment", query.experiment) if query.experiment else "",
        query.state or "",
        read_name("cluster", query.cluster) if query.cluster else "",
        query.owner or "",
        query.tag or "",
        read_time(query.since) if query.since else None,
        None if holds is None else lambda run: run.removed_at is None and holds(partial(value_of, run, now=now)),
    )


def find(system: System, name: str) -> dict[str, Any]:
    """The run or the drop that a name means."""
    found = find_name.find(system, name)
    return {"run": found.run, "drop": found.drop}


def _run_named(system: System, name: str) -> str:
    found = find_name.find(system, name)
    if not found.run:
        raise NotFound(f"Drop {found.drop} has made no run yet, so there is nothing to compare.")
    return found.run


def compared(system: System, text: str) -> dict[str, Any]:
    """Several runs, and what is different between them. Raises Impossible for fewer than two, or for too many."""
    wanted = list(dict.fromkeys(_run_named(system, name) for name in text.split(",") if name.strip()))
    if not 2 <= len(wanted) <= MOST_COMPARED:
        named = f"they all name {wanted[0]}" if len(wanted) == 1 else f"there are {len(wanted)}"
        raise Impossible(f"Name 2 to {MOST_COMPARED} different runs to compare; {named}.", "bad_parameter")
    runs = [with_parameters(system.runs.get(name).value) for name in wanted]
    return {"runs": [told(system, run) for run in runs], **compare(runs, system.clock())}
