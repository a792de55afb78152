"""A challenge: compare a route's run with the champion of the route's model. The run becomes a version, and takes the
alias, only if it wins.

Both must be measured on the same data, else nobody can say which is better. If the data differ, the champion is tested
on the challenger's data, or the champion stays and the notice says how to decide by hand. The first run with the metric
wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.jobs.route import Routes
from shared.jobs.route_model import RouteModel
from shared.kernel.errors import Conflict, Impossible, NotFound, Unavailable
from shared.kernel.person import Person
from shared.models import champion_test, promote
from shared.models.champion_test import challenger_of
from shared.models.decide import ChangeRequest
from shared.models.facts import ChallengeLost
from shared.models.find import version_named
from shared.models.messages import Challenge
from shared.models.model import Version
from shared.models.ports import ModelPorts, Models
from shared.models.reproduce import REPRODUCES
from shared.runs.model import Run, RunState
from shared.runs.ports import Runs
from shared.runs.views.summary import lower_is_better, metric_named

BY = Person("challenger")
BY_HAND = "Promote it by hand if it is better."


@dataclass(frozen=True)
class ChallengeResult:
    """Whether the challenger wins, and the reason as a sentence."""

    wins: bool
    why: str


def is_challenger(routes: Routes, run: Run) -> bool:
    """Return whether to decide a challenge now.

    That is the case for a completed run of a route that names a model, and for a run that tested a champion, however it
    ended. A reproduction never challenges.
    """
    if challenger_of(run):
        return True
    route = routes.get(run.asked.route)
    again = REPRODUCES in run.asked.request.tags
    return run.progress.state is RunState.COMPLETED and not again and route is not None and route.model is not None


def is_decided(ports: ModelPorts, message: Challenge) -> bool:
    """Return whether the run became a version, or its route no longer names a model."""
    run = _run(ports, message.run)
    return run is None or not is_challenger(ports.routes, run) or bool(ports.named.needing_run(run.name))


def archived_at(ports: ModelPorts, message: Challenge) -> datetime | None:
    run = _run(ports, message.run)
    return run.archive.at if run else None


def _run(ports: ModelPorts, name: str) -> Run | None:
    try:
        return ports.runs.get(name).value
    except NotFound:
        return None


def challenge(ports: ModelPorts, message: Challenge) -> None:
    """Promote the run if it beats the champion, otherwise state that it lost. A repeat changes nothing.

    If the two were measured on different data, and the route allows a test, the champion is first tested on the run's
    data. The end of that test starts the challenge again.
    """
    run = _archived(ports.runs, message.run)
    if challenger := challenger_of(run):
        run = _archived(ports.runs, challenger)
    route = ports.routes.get(run.asked.route)
    if route is None or (rule := route.model) is None or not is_challenger(ports.routes, run):
        return
    champion = _champion(ports.models, rule)
    if champion and champion.run == run.name:  # a repeat
        promote.point(ports, rule.name, champion.number, rule.alias, ChangeRequest(ports.clock(), BY))
        return
    verdict = _verdict(ports, rule, run, champion)
    if verdict is None:
        return
    if not verdict.wins:
        ports.happened(ChallengeLost(rule.name, run.name, verdict.why))
        return
    try:
        promote.promote_run(ports, run.name, rule.name, rule.alias, ChangeRequest(ports.clock(), BY, verdict.why))
    except (Conflict, Impossible, NotFound) as exc:
        ports.happened(ChallengeLost(rule.name, run.name, f"It won, and can't be promoted. {exc}"))


def _archived(runs: Runs, name: str) -> Run:
    run = runs.get(name).value
    if run.archive.at is None:
        raise Unavailable(f"Run {name} is not archived yet.")
    return run


def _verdict(ports: ModelPorts, rule: RouteModel, run: Run, champion: Version | None) -> ChallengeResult | None:
    """Return the verdict; None while the champion is being tested on the run's data."""
    before = ports.runs.get(champion.run).value if champion else None
    if (
        champion is None
        or before is None
        or _same_data(run, before)
        or not rule.test
        or _value(rule.metric, run) is None
    ):
        return judge(rule, run, champion, before)
    try:
        test = champion_test.test_of(ports, champion, run, rule.test)
    except (Conflict, Impossible) as exc:
        return ChallengeResult(False, f"{champion} can't be tested on {_data(run)}. {exc}")
    if test.archive.at is None and test.archive.gave_up_at is None:
        return None
    if test.progress.state is not RunState.COMPLETED or (old := _value(rule.metric, test)) is None:
        what = (
            f"has no metric {rule.metric}" if test.progress.state is RunState.COMPLETED else f"is {test.progress.state}"
        )
        return ChallengeResult(
            False, f"{champion} could not be tested on {_data(run)}: run {test.name} {what}. {BY_HAND}"
        )
    return _compared(rule, run, champion, old)


def judge(rule: RouteModel, run: Run, champion: Version | None, before: Run | None) -> ChallengeResult:
    """Decide by the metric of each run's own training whether the run replaces the champion."""
    value = _value(rule.metric, run)
    if value is None:
        return ChallengeResult(False, f"It has no metric {rule.metric}.")
    if champion is None or before is None:
        return ChallengeResult(True, f"{rule.metric} {value:g}; there was no {rule.name}@{rule.alias}.")
    old = _value(rule.metric, before)
    if old is None:
        return ChallengeResult(False, f"{champion} has no metric {rule.metric} to compare with.")
    if not _same_data(run, before):
        return ChallengeResult(
            False,
            f"{rule.metric} is {value:g}, {champion} had {old:g}, on other data: {_data(before)}, not {_data(run)}. "
            f"{BY_HAND} With model.challenger.test the route would have the champion tested on these.",
        )
    return _compared(rule, run, champion, old)


def _compared(rule: RouteModel, run: Run, champion: Version, old: float) -> ChallengeResult:
    value = _value(rule.metric, run) or 0.0
    gain = old - value if lower_is_better(rule.metric) else value - old
    words = f"{rule.metric} {value:g}, {champion} has {old:g} on the same data"
    if gain > 0 and gain >= rule.by:
        return ChallengeResult(True, f"{words}.")
    return ChallengeResult(False, f"{words}; to win it must be better by {rule.by:g}.")


def _same_data(run: Run, before: Run) -> bool:
    return (run.asked.fingerprint, run.asked.reads) == (before.asked.fingerprint, before.asked.reads)


def _champion(models: Models, rule: RouteModel) -> Version | None:
    stored = models.get(rule.name)
    alias = stored.value.aliases.get(rule.alias) if stored else None
    return version_named(models, rule.name, alias.number) if alias else None


def _value(metric: str, run: Run) -> float | None:
    name = metric_named(metric, run.archive.best_metrics)
    return run.archive.best_metrics[name] if name else None


def _data(run: Run) -> str:
    return f"{run.asked.drop}@{run.asked.generation}" if run.asked.drop else ", ".join(run.asked.reads) or "none"
