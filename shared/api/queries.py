"""Drops and runs as the JSON of the HTTP API."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from shared.api import records
from shared.api.requests import DropsQuery, RunListQuery, RunsQuery, read_name
from shared.clusters.azureml_cache import waiting
from shared.clusters.ports import ClusterPorts
from shared.drops import find_name
from shared.drops.ports import DropPorts
from shared.kernel.clock import Clock
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible, NotFound, TrainyardError
from shared.kernel.parsing import read_time
from shared.kernel.suggest import did_you_mean
from shared.models.find import run_of
from shared.models.ports import ModelPorts
from shared.ports import AllPorts
from shared.runs import features
from shared.runs.decide import is_over
from shared.runs.features import instead_of
from shared.runs.model import Run
from shared.runs.ports import RunFields, RunFilter
from shared.runs.progress.workloads import workload
from shared.runs.views.compare import compare
from shared.runs.views.run_filter import condition, names_in
from shared.runs.views.summary import FIELDS, names_of, value_of

log = logging.getLogger(__name__)

MOST_COMPARED = 20
HINTED_FROM = 200  # newest runs whose names a hint can suggest


def drop(ports: DropPorts, route: str, name: str) -> dict[str, Any]:
    """Return one drop. Raises NotFound with the existing routes."""
    stored = ports.drops.get(DropKey(route, name))
    if stored is None:
        route_names = ", ".join(sorted(ports.routes))
        raise NotFound(f"No upload to drops/{route}/{name} was seen. Routes: {route_names}.")
    return records.drop(stored.value)


def drops(ports: DropPorts, query: DropsQuery) -> list[dict[str, Any]]:
    """Return up to a thousand drops by name, of one route or of all, starting after the drop `query.after`.

    Without `details`, a drop has the fields that a list shows.
    """
    after = DropKey.of(query.after) if query.after else None
    drop_records = ports.drops.listed(query.route or None, after, query.limit)
    return [records.drop(record) if query.details else records.listed_drop(record) for record in drop_records]


def run(ports: ClusterPorts, name: str, viewed: bool = False) -> dict[str, Any]:
    """Return a run. `viewed`: a person or a program follows the run, so it is worth checking."""
    found = ports.runs.get(name).value
    if viewed:
        found = as_viewed(ports, found)
    return shown_run(ports, with_parameters(found))


def as_viewed(ports: ClusterPorts, run: Run) -> Run:
    """Return the run with what the features find because somebody views it. No answer depends on this."""
    if is_over(run):
        return run
    try:
        return features.viewed(ports, run)
    except TrainyardError as exc:
        log.warning("run %s is viewed without a check: %s", run.name, exc)
        return run


def with_parameters(run: Run) -> Run:
    """Return the run with its parameters, which are read from its job if the row predates the column for them.

    A sweep has only the parameters that are equal in all its trials.
    """
    if run.asked.parameters or not workload(run).has_own_nodes:
        return run
    return replace(run, asked=replace(run.asked, parameters=run.asked.request.values))


def shown_run(ports: ClusterPorts, run: Run) -> dict[str, Any]:
    """Return a run, and why it has not started."""
    return records.run(run, waiting(ports, run))


def runs(ports: ClusterPorts, query: RunListQuery) -> dict[str, Any]:
    """Return a page of runs, newest first, and the token of the next page. A short page need not be the last.

    Without `details`, a run has the fields that a list shows, and only their columns are read. With a condition, a page
    reads up to 4,000 runs; `looked_at` is how many were read.
    """
    fields = RunFields.ALL if query.details or query.where else RunFields.ENTRY
    page = ports.runs.page(run_filter(ports.clock, query), query.limit, query.token or "", fields=fields)
    runs = [run for run in page.runs if run.removed.at is None]
    shown = [shown_run(ports, run) if query.details else records.listed(run, ports.clock()) for run in runs]
    answer = {"runs": shown, "continue": page.token or None}
    hint = ""
    if query.where and not (runs or page.token):
        hint = _unknown_names(ports.runs.newest(HINTED_FROM), query.where)
    return answer | {"looked_at": page.looked_at} | ({"hint": hint} if hint else {})


def _unknown_names(newest: Iterable[Run], where: str) -> str:
    """Return a hint about names in a condition that none of the newest runs has, with the nearest existing names."""
    names = set(FIELDS).union(*(names_of(run) for run in newest))
    unknown = [name for name in dict.fromkeys(names_in(where)) if name not in names]
    return " ".join(f"No run has {name[:80]!r}.{did_you_mean(name, names)}" for name in unknown)


def run_filter(clock: Clock, query: RunsQuery) -> RunFilter:
    """Return the filter of a query. Raises Impossible for an invalid condition."""
    now = clock()
    holds = condition(query.where) if query.where else None
    return RunFilter(
        read_name("experiment", query.experiment) if query.experiment else "",
        query.state or "",
        read_name("cluster", query.cluster) if query.cluster else "",
        query.owner or "",
        query.tag or "",
        read_time(query.since) if query.since else None,
        None if holds is None else lambda run: run.removed.at is None and holds(partial(value_of, run, now=now)),
    )


def find(ports: ModelPorts, name: str) -> dict[str, Any]:
    """Return the run or the drop that a name means."""
    target = _found(ports, name)
    return {"run": target.run, "drop": target.drop}


def _found(ports: ModelPorts, name: str) -> find_name.FoundName:
    """Resolve a name. `churn@production` is the run of that version, if there is such a model."""
    if run := run_of(ports.models, name):
        return find_name.FoundName(run, "")
    return find_name.find(ports, name)


def _run_named(ports: ModelPorts, name: str) -> str:
    target = _found(ports, name)
    if not target.run:
        raise NotFound(f"Drop {target.drop} has not started a run yet, so there is nothing to compare.")
    return target.run


def compared(ports: AllPorts, text: str) -> dict[str, Any]:
    """Return several runs and their differences. Raises Impossible for fewer than two, or for too many."""
    run_names = list(dict.fromkeys(_run_named(ports, name) for name in text.split(",") if name.strip()))
    if len(run_names) == 1:
        run_names = instead_of(ports, run_names[0])[:MOST_COMPARED] or run_names
    if not 2 <= len(run_names) <= MOST_COMPARED:
        named = f"they all name {run_names[0]}" if len(run_names) == 1 else f"there are {len(run_names)}"
        raise Impossible(f"Name 2 to {MOST_COMPARED} different runs to compare; {named}.", "bad_parameter")
    runs = [with_parameters(ports.runs.get(name).value) for name in run_names]
    return {"runs": [shown_run(ports, run) for run in runs], **compare(runs, ports.clock())}
