"""A challenge: compare a route's run with the champion of the route's model. The run becomes a version, and takes the
alias, only if it wins.

Both must be measured on the same data, because otherwise the values can't be compared. If the data differ, the champion
is tested on the challenger's data, or the champion stays and the notice says how to decide by hand. The first run with
the metric wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shared.drops.versions import listing_of
from shared.jobs.metric_goal import Goal
from shared.jobs.route import Routes
from shared.jobs.route_model import RouteModel
from shared.kernel.errors import Conflict, Impossible, NotFound, Unavailable
from shared.kernel.person import Person
from shared.kernel.ports import StoragePorts
from shared.models import champion_test, promote
from shared.models.champion_test import challenger_of
from shared.models.decide import ChangeRequest, OtherChampion
from shared.models.facts import AliasMoved, ChallengeLost
from shared.models.find import decision_of, version_named
from shared.models.goal import goal_for, value_of, whose_word
from shared.models.messages import Challenge
from shared.models.model import Change, ChangeKind, Model, Version
from shared.models.ports import ModelPorts
from shared.models.reproduce import REPRODUCES
from shared.runs.content import JOB_FILES, SUCCESS_MARKER
from shared.runs.find_run import find_run
from shared.runs.model import Run, RunState
from shared.runs.ports import RunPorts, Runs

BY = Person("challenger")
BY_HAND = "Promote it by hand if it is better."
TRIES = 5  # judgements of one message while other decisions move the alias


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
    again = REPRODUCES in run.asked.request.tags
    return run.progress.state is RunState.COMPLETED and not again and _rule(routes, run) is not None


def is_decided(ports: ModelPorts, message: Challenge) -> bool:
    """Return whether the run was judged, or the run's route no longer names a model."""
    run = find_run(ports.runs, message.run)
    if run is None or not is_challenger(ports.routes, run):
        return True
    rule = _rule(ports.routes, find_run(ports.runs, challenger_of(run)) or run)
    return rule is None or decision_of(ports.models, rule.name, rule.alias, challenger_of(run) or run.name) is not None


def archived_at(ports: RunPorts, message: Challenge) -> datetime | None:
    run = find_run(ports.runs, message.run)
    return run.archive.at if run else None


def challenge(ports: ModelPorts, message: Challenge) -> None:
    """Promote the run if it beats the champion; otherwise record and state the loss.

    A run is judged once: a repeat changes nothing, even after somebody moved the alias back. If the alias moves while
    the run is judged, the run is judged again, by the new champion.

    If the two were measured on different data, and the route allows a test, the champion is first tested on the run's
    data. The end of that test starts the challenge again.
    """
    run = _archived(ports.runs, message.run)
    if challenger := challenger_of(run):
        run = _archived(ports.runs, challenger)
    rule = _rule(ports.routes, run)
    if rule is None or not is_challenger(ports.routes, run):
        return
    for _ in range(TRIES):
        stored = ports.models.get(rule.name)  # read before the history, so that `Judged` detects every later decision
        if decided := decision_of(ports.models, rule.name, rule.alias, run.name):
            _state(ports, rule, run, decided)
            return
        try:
            _judge(ports, rule, run, stored.value if stored else None)
        except OtherChampion:
            continue
        return
    raise Unavailable(f"{rule.name}@{rule.alias} moved during each attempt to judge run {run.name}.")


def _rule(routes: Routes, run: Run) -> RouteModel | None:
    route = routes.get(run.asked.route)
    return route.model if route and route.model and route.model.metric else None


def _state(ports: StoragePorts, rule: RouteModel, run: Run, line: Change) -> None:
    """State the decision again, because the process may have crashed between the write and the statement."""
    fact = ChallengeLost(rule.name, run.name, line.why) if line.what is ChangeKind.LOST else AliasMoved(line)
    ports.happened(fact)


def _judge(ports: ModelPorts, rule: RouteModel, run: Run, model: Model | None) -> None:
    """Judge the run by the champion of this moment.

    Raises OtherChampion if the alias moves, or another decision on the run is made, meanwhile.
    """
    alias = model.aliases.get(rule.alias) if model else None
    champion = version_named(ports.models, rule.name, alias.number) if alias else None
    goals: dict[str, str] = {}
    try:
        goals = {rule.metric: goal_for(rule, run, model)}
        verdict = _verdict(ports, rule, run, champion, Goal(goals[rule.metric]))
    except Impossible as exc:
        verdict = ChallengeResult(False, str(exc))
    if verdict is None:
        return
    judged = promote.Judged(run.name, alias, model.changes if model else 0, goals)
    if verdict.wins:
        try:
            asked = ChangeRequest(ports.clock(), BY, verdict.why, by_rule=True)
            promote.promote_run(ports, run.name, rule.name, rule.alias, asked, rule.allow_code, judged)
        except (Conflict, Impossible, NotFound) as exc:
            verdict = ChallengeResult(False, f"It won, but can't be promoted. {exc}")
    if not verdict.wins:
        if model:
            promote.keep(ports, rule.name, rule.alias, judged, ChangeRequest(ports.clock(), BY, verdict.why))
        ports.happened(ChallengeLost(rule.name, run.name, verdict.why))


def _archived(runs: Runs, name: str) -> Run:
    run = runs.get(name).value
    if run.archive.at is None:
        raise Unavailable(f"Run {name} is not archived yet.")
    return run


def _verdict(
    ports: ModelPorts, rule: RouteModel, run: Run, champion: Version | None, goal: Goal
) -> ChallengeResult | None:
    """Return the verdict; None while the champion is being tested on the run's data."""
    before = ports.runs.get(champion.run).value if champion else None
    if champion and before and _same_files(ports, run, before):
        value, old = (value_of(rule.metric, each) for each in (run, before))
        if value is not None and old is not None:
            return _compared(rule, run, champion, old, goal)
    if (
        champion is None
        or before is None
        or _same_data(run, before)
        or not rule.test
        or value_of(rule.metric, run) is None
    ):
        return judge(rule, run, champion, before, goal)
    try:
        test = champion_test.test_of(ports, champion, run, rule.test)
    except (Conflict, Impossible) as exc:
        return ChallengeResult(False, f"{champion} can't be tested on {_data(run)}. {exc}")
    if test.archive.at is None and test.archiving.gave_up_at is None:
        return None
    if test.progress.state is not RunState.COMPLETED or (old := value_of(rule.metric, test)) is None:
        what = (
            f"has no metric {rule.metric}" if test.progress.state is RunState.COMPLETED else f"is {test.progress.state}"
        )
        return ChallengeResult(
            False, f"{champion} could not be tested on {_data(run)}: run {test.name} {what}. {BY_HAND}"
        )
    return _compared(rule, run, champion, old, goal)


def judge(rule: RouteModel, run: Run, champion: Version | None, before: Run | None, goal: Goal) -> ChallengeResult:
    """Decide by the metric of the model that each run left whether the run replaces the champion."""
    value = value_of(rule.metric, run)
    if value is None:
        return ChallengeResult(False, f"It has no metric {rule.metric}.")
    if champion is None or before is None:
        word = whose_word(rule.metric, run)
        return ChallengeResult(
            True, f"{rule.metric} {value:g} ({goal}, {word}); there was no {rule.name}@{rule.alias}."
        )
    old = value_of(rule.metric, before)
    if old is None:
        return ChallengeResult(False, f"{champion} has no metric {rule.metric} to compare with.")
    if not _same_data(run, before):
        return ChallengeResult(
            False,
            f"{rule.metric} is {value:g}, {champion} had {old:g}, on other data: {_data(before)}, not {_data(run)}. "
            f"{BY_HAND} With model.challenger.test the route would have the champion tested on these.",
        )
    return _compared(rule, run, champion, old, goal)


def _compared(rule: RouteModel, run: Run, champion: Version, old: float, goal: Goal) -> ChallengeResult:
    value = value_of(rule.metric, run) or 0.0
    gain = old - value if goal is Goal.MINIMIZE else value - old
    words = f"{rule.metric} {value:g} ({goal}, {whose_word(rule.metric, run)}), {champion} has {old:g} on the same data"
    if gain > 0 and gain >= rule.by:
        return ChallengeResult(True, f"{words}.")
    return ChallengeResult(False, f"{words}; to win it must be better by {rule.by:g}.")


def _same_data(run: Run, before: Run) -> bool:
    return (run.asked.fingerprint, run.asked.reads) == (before.asked.fingerprint, before.asked.reads)


def _same_files(ports: ModelPorts, run: Run, before: Run) -> bool:
    """Return whether the drops of both runs had the same files, apart from job files."""
    if run.asked.reads != before.asked.reads:
        return False
    now, then = (_files(ports, each) for each in (run, before))
    return now is not None and now == then


def _files(ports: ModelPorts, run: Run) -> set[tuple[str, str]] | None:
    """Return the name and the content of each file of the run's drop, without job files and markers."""
    listing = listing_of(ports, run)
    if listing is None:
        return None
    names = {f"{run.asked.drop}/{name}" for name in (*JOB_FILES, SUCCESS_MARKER)}
    return {
        (blob.name.removeprefix(run.asked.drop), blob.md5 or blob.etag) for blob in listing if blob.name not in names
    }


def _data(run: Run) -> str:
    return f"{run.asked.drop}@{run.asked.generation}" if run.asked.drop else ", ".join(run.asked.reads) or "none"
