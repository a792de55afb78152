"""Resolve a name to a run or a drop: a full name, a prefix, `@latest`, `mnist@latest`, `mnist@best:accuracy`.

On a route that trains nothing, `data@latest` is the newest drop. `data/points@2` is a drop that still has this
generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from shared.drops.closed import closed_since
from shared.drops.model import DropState
from shared.drops.ports import DropPorts, Drops
from shared.jobs.route import Routes
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, Impossible, NotFound
from shared.kernel.suggest import did_you_mean, nearest, there_are
from shared.runs.features import part_of
from shared.runs.model import Run, RunState
from shared.runs.names import RUN_NAME
from shared.runs.ports import RunFilter, Runs
from shared.runs.views.run_list import matching
from shared.runs.views.summary import lower_is_better, metric_named, model_metrics

SHOWN = 8  # names to list for an ambiguous prefix
LOOKED_AT = 1000  # newest runs that are searched for the best one
REMEMBERED = 200  # names that are searched for a similar name


@dataclass(frozen=True)
class FoundName:
    """A run, or a drop with its run; the run may be ''."""

    run: str
    drop: str


def find(ports: DropPorts, text: str) -> FoundName:
    """Resolve the text. Raises NotFound with similar names, and Conflict for an ambiguous prefix."""
    name = text.strip().removeprefix("drops/").strip("/")
    if "@" in name:
        return _chosen(ports, name)
    if "/" in name:
        return _drop(ports.runs, ports.drops, name)
    if RUN_NAME.fullmatch(name) and (run_names := ports.runs.beginning_with(name, SHOWN + 1)):
        return FoundName(name if name in run_names else _only(text, run_names), "")
    raise _nothing(ports.runs, ports.drops, text)


def _drop(runs: Runs, drops: Drops, name: str) -> FoundName:
    route, _, rest = name.partition("/")
    key = DropKey(route, rest)
    if stored := drops.get(key):
        return FoundName(stored.value.run, name)
    following = drops.listed(route, key, SHOWN + 1)  # names with this prefix come first
    alike = [drop for drop in following if drop.key.name.startswith(rest)]
    if not alike:
        raise _nothing(runs, drops, name)
    only = _only(name, [str(drop.key) for drop in alike])
    return FoundName(next(drop.run for drop in alike if str(drop.key) == only), only)


def _only(text: str, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = " and more" if len(names) > SHOWN else ""
    raise Conflict(f"{text!r} is a prefix of {', '.join(names[:SHOWN])}{more}. Write more characters.", "ambiguous")


def _chosen(ports: DropPorts, name: str) -> FoundName:
    """Resolve `where@which`: the newest or best run of a route, experiment or drop; without `where`, of all runs."""
    where, _, which = name.partition("@")
    if "/" in where and which.isdigit():
        return _generation(ports.runs, ports.drops, where, int(which))
    if which == "latest" and (route := ports.routes.get(where)) and not route.trains:
        return _newest_drop(ports.drops, where)
    kind, _, metric = which.partition(":")
    if kind not in ("latest", "best") or (kind == "best") != bool(metric):
        only_there = " @new and @all-new are for schedules." if which in ("new", "all-new") else ""
        raise Impossible(f"{name!r} is not valid; write @latest or @best:METRIC.{only_there}", "bad_name")
    runs = _candidates(ports.runs, ports.routes, where, completed=kind == "best")
    if not runs:
        of = f" of {where!r}" if where else ""
        raise NotFound(f"There is no {'completed ' if kind == 'best' else ''}run{of} yet.{_meant(ports.routes, where)}")
    return FoundName(_latest(runs) if kind == "latest" else _best(runs, metric).name, "")


def _latest(runs: list[Run]) -> str:
    """The newest run that someone requested. A trial is a part of its sweep, so the sweep is meant."""
    return next((run.name for run in runs if not part_of(run)), part_of(runs[0]))


def _generation(runs: Runs, drops: Drops, name: str, number: int) -> FoundName:
    data = _drop(runs, drops, name)
    stored = drops.get(DropKey.of(data.drop))
    drop = stored.value if stored else None
    if drop is None or drop.generation != number or drop.state is not DropState.SEALED:
        there = f"generation {drop.generation}, and is {drop.state}" if drop else "nothing"
        raise Conflict(
            f"Drop {data.drop} has {there}: generation {number} has been overwritten. Only the newest can be used; "
            "to keep a version, upload it as a drop with its own name.",
            "other_generation",
        )
    return data


def _newest_drop(drops: Drops, route: str) -> FoundName:
    closed = closed_since(drops, route)
    if not closed:
        raise NotFound(f"No drop of route {route} has closed yet.")
    return FoundName(closed[-1].run, str(closed[-1].key))


def _best(runs: list[Run], metric: str) -> Run:
    having = [(run, full) for run in runs if (full := metric_named(metric, model_metrics(run)))]
    if not having:
        names = {name for run in runs for name in model_metrics(run)}
        raise NotFound(f"No run has a metric {metric!r}.{did_you_mean(metric, names)} There are: {there_are(names)}.")
    value = {run.name: model_metrics(run)[full] for run, full in having}
    choose = min if lower_is_better(having[0][1], having[0][0]) else max
    return choose((run for run, _ in having), key=lambda run: value[run.name])


def _candidates(runs: Runs, routes: Routes, where: str, completed: bool) -> list[Run]:
    """The runs of a route, an experiment or a drop, newest first."""
    state = str(RunState.COMPLETED) if completed else ""
    experiments = {where, *(route.experiment for name, route in routes.items() if name == where)}
    if "/" in where or not where:
        filters = [RunFilter(state=state)]
    else:
        filters = [RunFilter(experiment=experiment, state=state) for experiment in sorted(experiments)]
    found = {run.name: run for run_filter in filters for run in islice(matching(runs, run_filter), LOOKED_AT)}
    of_drop = [run for run in found.values() if "/" not in where or run.asked.drop == where]
    return sorted(of_drop, key=lambda run: run.created_at, reverse=True)


def _meant(routes: Routes, where: str) -> str:
    return did_you_mean(where, routes) if where and where not in routes else ""


def _nothing(runs: Runs, drops: Drops, text: str) -> NotFound:
    names = [run.name for run in runs.newest(REMEMBERED)]
    names += [str(drop.key) for drop in islice(drops.listed(None, None, LOOKED_AT), REMEMBERED)]
    # A prefix is compared with prefixes of the same length
    begun = {name[: max(len(text), 4)]: name for name in reversed(names)}
    meant = nearest(text, names) or begun.get(nearest(text, begun), "")
    return NotFound(f"There is no run or drop {text[:80]!r}." + (f" Did you mean {meant!r}?" if meant else ""))
