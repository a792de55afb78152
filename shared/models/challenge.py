"""A route's run against the champion of the route's model: it becomes a version, and takes the alias, only if it wins.

Both must have been measured on the same data, else nobody can say who won. The first run with the metric wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared.jobs.route_model import RouteModel
from shared.jobs.routes_file import Routes
from shared.kernel.errors import Conflict, Impossible, NotFound, Unavailable
from shared.kernel.person import Person
from shared.models import promote
from shared.models.decide import Asked
from shared.models.facts import ChallengeLost
from shared.models.find import version_named
from shared.models.model import Version
from shared.runs.model import Run, RunState
from shared.runs.views.summary import lower_is_better, metric_named

BY = Person("challenger")


class Ports(promote.Ports, Protocol):
    """What is needed here from outside."""


@dataclass(frozen=True)
class Verdict:
    """Whether the challenger wins, and why, in a sentence."""

    wins: bool
    why: str


def is_challenger(routes: Routes, run: Run) -> bool:
    """Whether this completed run's route names a model."""
    route = routes.get(run.asked.route)
    return run.progress.state is RunState.COMPLETED and route is not None and route.model is not None


def challenge(ports: Ports, name: str) -> None:
    """Promote the run if it beats the champion, else say that it does not. Twice is once."""
    run = ports.runs.get(name).value
    if run.archive.at is None:
        raise Unavailable(f"Run {name} is not archived yet.")
    route = ports.routes.get(run.asked.route)
    if route is None or (rule := route.model) is None or not is_challenger(ports.routes, run):
        return
    champion = _champion(ports, rule)
    if champion and champion.run == name:
        return
    verdict = judge(rule, run, champion, ports.runs.get(champion.run).value if champion else None)
    if not verdict.wins:
        ports.happened(ChallengeLost(rule.name, name, verdict.why))
        return
    try:
        promote.promote_run(ports, name, rule.name, rule.alias, Asked(ports.clock(), BY, verdict.why))
    except (Conflict, Impossible, NotFound) as exc:
        ports.happened(ChallengeLost(rule.name, name, f"It won, and can't be promoted. {exc}"))


def judge(rule: RouteModel, run: Run, champion: Version | None, before: Run | None) -> Verdict:
    """Whether the run takes the champion's place."""
    value = _value(rule.metric, run)
    if value is None:
        return Verdict(False, f"It has no metric {rule.metric}.")
    if champion is None or before is None:
        return Verdict(True, f"{rule.metric} {value:g}; there was no {rule.name}@{rule.alias}.")
    old = _value(rule.metric, before)
    if old is None:
        return Verdict(False, f"{champion} has no metric {rule.metric} to compare with.")
    if (run.asked.fingerprint, run.asked.reads) != (before.asked.fingerprint, before.asked.reads):
        return Verdict(
            False,
            f"{rule.metric} is {value:g}, {champion} had {old:g}, on other data: {_data(before)}, not {_data(run)}. "
            f"Promote it by hand if it is better.",
        )
    gain = old - value if lower_is_better(rule.metric) else value - old
    words = f"{rule.metric} {value:g}, {champion} has {old:g} on the same data"
    if gain > 0 and gain >= rule.by:
        return Verdict(True, f"{words}.")
    return Verdict(False, f"{words}; to win it must be better by {rule.by:g}.")


def _champion(ports: Ports, rule: RouteModel) -> Version | None:
    stored = ports.models.get(rule.name)
    alias = stored.value.aliases.get(rule.alias) if stored else None
    return version_named(ports.models, rule.name, alias.number) if alias else None


def _value(metric: str, run: Run) -> float | None:
    name = metric_named(metric, run.archive.best_metrics)
    return run.archive.best_metrics[name] if name else None


def _data(run: Run) -> str:
    return f"{run.asked.drop}@{run.asked.generation}" if run.asked.drop else ", ".join(run.asked.reads) or "none"
