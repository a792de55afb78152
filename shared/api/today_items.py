"""The items of the present state that need a person, and the events since yesterday. Pure.

An item that needs a person names one thing, gives the reason in one sentence, and has the kind by which people act on
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.clusters.lease_model import Lease
from shared.clusters.model import Cluster
from shared.drops.model import Drop
from shared.jobs.metric_goal import Goal, goal_of
from shared.jobs.route import Routes
from shared.kernel.encode import Json, plain
from shared.models.model import Model, Version
from shared.money.ledger import KINDS
from shared.runs.features import outline, part_of
from shared.runs.model import Run, RunState
from shared.runs.views.summary import best_metric, cause, model_metrics

FAILED_FOR = timedelta(days=7)  # a failure older than this no longer needs anybody
YESTERDAY = timedelta(hours=24)
NEARLY_SPENT = 0.8  # of a budget
PRODUCTION = "production"  # the alias of a champion if no route names another


def failed_runs(runs: Sequence[Run], now: datetime) -> list[Json]:
    """Return the failed runs that nobody has repeated or continued, and whose drop has no completed run since."""
    repeated = {name for run in runs for name in (run.asked.retry_of, run.asked.continues)}
    completed: set[str] = set()
    items = []
    for run in runs:  # newest first
        if run.progress.state is RunState.COMPLETED:
            completed.add(run.asked.drop)
        elif _has_failed(run, now) and run.name not in repeated and (run.asked.drop or "-") not in completed:
            items.append(_item("failed", run.name, _why_failed(run), _ended(run)) | {"at_most": run.money.greatest})
    return items


def _has_failed(run: Run, now: datetime) -> bool:
    return run.progress.state is RunState.FAILED and not part_of(run) and now - run.created_at < FAILED_FOR


def _why_failed(run: Run) -> str:
    return outline(run).cause or cause(run)


def _ended(run: Run) -> datetime:
    return run.progress.history[-1].at if run.progress.history else run.created_at


def late_runs(live: Iterable[Run]) -> list[Json]:
    """Return the live runs that will miss the date by which they should be done."""
    late = [(run, said) for run in live if (said := outline(run)).late_since]
    return [
        _item("late", run.name, f"It will not be done by {said.done_by:%Y-%m-%d %H:%M} UTC.", said.late_since)
        for run, said in late
    ]


def rejected_drops(drops: Iterable[Drop]) -> list[Json]:
    items = [_item("rejected", str(drop.key), drop.why, drop.sealed_at or drop.opened_at) for drop in drops]
    return sorted(items, key=lambda item: item["at"] or "", reverse=True)


def budgets(states: Iterable[Json]) -> list[Json]:
    """Return the projects of which at least NEARLY_SPENT of this month's budget is spent or reserved."""
    return [
        _item("budget", each["project"], "", None)
        | {"at": each["reached_at"], "spent": each["spent"], "reserved": each["kept_back"], "month": each["month"]}
        for each in states
        if each["month"] and each["spent"] + each["kept_back"] >= NEARLY_SPENT * each["month"]
    ]


def poison(counts: dict[str, dict[str, int]]) -> list[Json]:
    return [
        _item("poison", queue, "", None) | {"messages": its["poison"]} for queue, its in counts.items() if its["poison"]
    ]


def idle_leased(clusters: Iterable[Cluster], leases: Iterable[Lease], now: datetime) -> list[Json]:
    """Return the leases that hold nodes on which nothing runs."""
    idle = {cluster.name: cluster.idle_nodes for cluster in clusters if cluster.idle_nodes}
    return [
        _item("idle", lease.cluster, lease.why, lease.made_at)
        | {"lease": lease.id, "nodes": min(lease.nodes, idle[lease.cluster]), "until": plain(lease.until)}
        for lease in leases
        if lease.holds(now) and lease.cluster in idle
    ]


def _item(kind: str, name: str, why: str, at: datetime | None) -> Json:
    return {"kind": kind, "name": name, "why": why, "at": plain(at)}


def running(run: Run) -> Json:
    """Return a running run with its progress, its cost so far in dollars, and its greatest possible cost."""
    said = outline(run)
    cost = said.dollars if said.dollars is not None else run.money.cost.dollars if run.money.cost else None
    began = next((moment.at for moment in run.progress.history if moment.state is RunState.RUNNING), None)
    best = best_metric(run)
    return {
        "run": run.name,
        "started_at": plain(began),
        "cost": cost,
        "at_most": run.money.greatest,
        "done_share": said.done_share,
        "epochs": epochs if isinstance(epochs := run.asked.parameters.get("epochs"), int) and epochs > 0 else None,
        "done_by": plain(said.done_by),
        "late": said.late_since is not None,
        "headline": best[0] if best else None,
    }


@dataclass(frozen=True)
class Champion:
    """The version at an alias, and the experiment of its run."""

    version: Version
    experiment: str


def champion_numbers(models: Iterable[Model], routes: Routes) -> list[tuple[str, int]]:
    """Return each model that has an alias, with the version at its alias; the latest moved aliases come first.

    The alias is the one for which a route's runs compete, else `production`, else the alias that was moved last.
    """
    named = {route.model.name: route.model.alias for route in routes.values() if route.model}
    found = []
    for model in models:
        last = max(model.aliases, key=lambda alias: model.aliases[alias].at, default="")
        wanted = (named.get(model.name, ""), PRODUCTION, last)
        if alias := next((model.aliases[name] for name in wanted if name in model.aliases), None):
            found.append((alias.at, model.name, alias.number))
    return [(name, number) for _, name, number in sorted(found, reverse=True)]


def completed(runs: Sequence[Run], champions: Sequence[Champion], now: datetime) -> list[Json]:
    """Return the runs completed within YESTERDAY, newest first.

    Each has its metric, and the metric's values of the champion and of the previous completed run of its experiment.
    """
    ended = [run for run in runs if run.progress.state is RunState.COMPLETED and not part_of(run)]
    recent = [(at, run) for at, run in enumerate(ended) if now - _ended(run) < YESTERDAY]
    return [_completed(run, champions, ended[at + 1 :]) for at, run in recent]


def _completed(run: Run, champions: Sequence[Champion], older: Sequence[Run]) -> Json:
    best = best_metric(run)
    metric = best[0] if best else ""
    ruling = [(str(each.version), each.version.metrics) for each in champions if _is_champion_for(each, run)]
    before = [(old.name, model_metrics(old)) for old in older if old.asked.experiment == run.asked.experiment]
    return {
        "run": run.name,
        "at": plain(_ended(run)),
        "metric": metric or None,
        "value": model_metrics(run).get(metric),
        "champion": _rival(run, metric, ruling),
        "before": _rival(run, metric, before),
    }


def _is_champion_for(champion: Champion, run: Run) -> bool:
    return champion.experiment == run.asked.experiment and champion.version.run != run.name


def _rival(run: Run, metric: str, others: Iterable[tuple[str, Mapping[str, float]]]) -> Json | None:
    """Return the first of the others that has the metric, and whether the run is better than this rival."""
    value = model_metrics(run).get(metric)
    if value is None:
        return None
    known = ((name, metrics[metric]) for name, metrics in others if metric in metrics)
    return next(
        ({"name": name, "value": its, "better": _is_better(run, metric, value, its)} for name, its in known), None
    )


def _is_better(run: Run, metric: str, value: float, earlier: float) -> bool | None:
    """Return whether the value is better; None if the values are equal, or if the metric's direction is unknown."""
    if value == earlier:
        return None
    goal = run.measured.goals.get(metric) or goal_of(metric)
    return None if goal is None else (value > earlier) is (goal == Goal.MAXIMIZE)


def spent(days: Iterable[Json], now: datetime) -> Json:
    """Return the dollars of this and the previous day in UTC; a day without costs is not among `days`."""
    sums = {each["day"]: sum(each[kind] for kind in KINDS) for each in days}
    this, before = (at.date().isoformat() for at in (now, now - timedelta(days=1)))
    return {"today": sums.get(this, 0.0), "yesterday": sums.get(before, 0.0)}


def promotions(models: Iterable[Model], now: datetime) -> list[Json]:
    """Return the aliases that were moved within YESTERDAY, newest first."""
    moved = [
        {"model": model.name, "alias": alias, "version": to.number, "at": plain(to.at), "by": to.by, "why": to.why}
        for model in models
        for alias, to in model.aliases.items()
        if now - to.at < YESTERDAY
    ]
    return sorted(moved, key=lambda each: str(each["at"]), reverse=True)
