"""Runs that challenge their route's champion while people move the alias, and the rules for a verdict.

A run's metric follows from the run's name, so the oracle judges each verdict a second time, from other data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from zlib import crc32

from shared.drops.retrain import train_again
from shared.jobs.route_model import RouteModel
from shared.jobs.spec import FROM_MODEL_TAG
from shared.kernel.drop_key import DropKey
from shared.models.challenge import BY, is_challenger
from shared.models.champion_test import challenger_of
from shared.models.messages import Challenge
from shared.models.model import Change, ChangeKind
from shared.models.ports import Write
from shared.runs.model import Run
from tests.fakes.world import World
from tests.simulation.promotions import MODEL
from tests.simulation.rules import Actions, Rules
from tests.simulation.scheduler import check

ALIAS, METRIC, WORTHS = "production", "test_accuracy", 5
DATA = ("mnist/a/1.bin", "mnist/a/_SUCCESS", "mnist/b/1.bin", "mnist/b/_SUCCESS")
NO_VERDICT = ("can't be promoted", "other data", "can't be tested", "could not be tested")  # losses without a verdict


def worth(run: str) -> float:
    """Return the metric of a run's saved model: one of a few values, so that some runs are equally good."""
    return crc32(run.encode()) % WORTHS / WORTHS


def train_more(simulation: Any) -> None:
    """Train the same data once more, so that several runs challenge the same champion."""
    key = f"challenger{simulation.random.randrange(6)}"
    drop = DropKey("mnist", simulation.random.choice("aab"))
    simulation.host.call("train_again", partial(train_again, simulation.system, drop, key))


def deliver_again(simulation: Any) -> None:
    """Deliver a challenge once more, however long ago the run was judged."""
    archived = [name for name, row in simulation.world.runs.rows.items() if row.value.archive.at]
    if archived:
        message = Challenge(simulation.random.choice(archived))
        simulation.note("AGAIN", (message.run,))
        simulation.world.queues.send(message)
        simulation.counts["challenges delivered again"] += 1


def check_verdicts(world: World, write: Write) -> None:
    """Check that each verdict is the first one of its run, and that the judged champion is the current one."""
    for line in write.changes:
        if line.by == BY.name and line.what in (ChangeKind.ALIAS, ChangeKind.LOST):
            _is_first(world, line)
            _is_right(world, line)


def _is_first(world: World, line: Change) -> None:
    run = run_of(world, line)
    earlier = [each for each in lines(world) if each.order < line.order and each.alias == line.alias]
    decided = [each for each in earlier if each.what is not ChangeKind.UNDO and run_of(world, each) == run]
    check(not decided, f"run {run} is judged again, after {[(each.what, each.order) for each in decided]}")


def _is_right(world: World, line: Change) -> None:
    """Return whether the alias moves to a better version only, and a run that loses on equal data is not better."""
    run = world.runs.rows[run_of(world, line)].value
    old = _worth_of_champion(world, line.before, run)
    if line.what is ChangeKind.ALIAS:
        check(old is None or worth(run.name) > old, f"run {run.name} took the alias from a better one: {line.why}")
        said = f"{MODEL}/{line.before} has" if line.before else "there was no"
        check(said in line.why, f"{line.alias} moved from {line.before}, which was not judged: {line.why}")
    elif not any(words in line.why for words in NO_VERDICT):
        check(old is not None and worth(run.name) <= old, f"run {run.name} lost, though it is better: {line.why}")
        check(f"{MODEL}/{line.before}" in line.why, f"run {run.name} lost to another champion: {line.why}")


def _worth_of_champion(world: World, number: int, challenger: Run) -> float | None:
    """Return the champion's metric: from its own run, or from its test on the challenger's data."""
    champion = world.models.version(MODEL, number)
    if champion is None:
        return None
    runs = [row.value for row in world.runs.rows.values()]
    tests = [each.name for each in runs if challenger_of(each) == challenger.name and _tests(each, champion.run)]
    return worth(tests[0] if tests else champion.run)


def _tests(run: Run, champion: str) -> bool:
    return run.asked.from_run == champion


def run_of(world: World, line: Change) -> str:
    """Return the run that a history line judges or points at; '' if there is none."""
    version = world.models.version(MODEL, line.after)
    return line.run or (version.run if version else "")


def lines(world: World) -> Iterator[Change]:
    """Yield the model's history in order."""
    return iter(sorted(world.models.history(MODEL, 10_000), key=lambda line: line.order))


def check_judged(world: World, poison: list[str]) -> None:
    """Check that at the end each archived challenger has a verdict, unless its message was poisoned.

    The app records no verdict before there is a model.
    """
    judged = {run_of(world, line) for line in lines(world) if line.alias == ALIAS}
    for run in [row.value for row in world.runs.rows.values()]:
        challenges = not challenger_of(run) and is_challenger(world.system.routes, run)
        aside = any(run.name in text for text in poison)
        if challenges and run.archive.at is not None and MODEL in world.models.rows:
            check(aside or run.name in judged, f"run {run.name} was never judged")


class ChallengeRules(Rules):
    also = "challenges"

    def start(self, simulation: Any) -> None:
        """Let the runs of the route compete; most complete. In half of the schedules the champion is tested on
        other data."""
        routes = simulation.world.system.routes
        test = simulation.random.choice(({}, {"epochs": 0}))
        template = replace(routes["mnist"].template, tags={FROM_MODEL_TAG: "--model"})
        rule = RouteModel(MODEL, METRIC, alias=ALIAS, test=test)
        routes["mnist"] = replace(routes["mnist"], model=rule, template=template)
        simulation.files, simulation.fates = [*DATA], ("Completed", "Completed", "Completed", "Failed", "Queued")

    def actions(self, simulation: Any) -> Actions:
        return [(partial(train_more, simulation), 3.0), (partial(deliver_again, simulation), 2.0)]

    def begun(self, _world: World, run: Run) -> bool:
        return bool(challenger_of(run))

    def promotes(self, simulation: Any) -> None:
        deliver_again(simulation)

    def goes(self, world: World, run: Run, raw: str, go: Callable[[], None]) -> None:
        go()
        if raw == "Completed":
            content = json.dumps({"step": 1, METRIC: worth(run.name)}).encode()
            world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/metrics/metrics.jsonl", content)

    def written(self, world: World, write: Write) -> None:
        check_verdicts(world, write)

    def healed(self, simulation: Any) -> None:
        if simulation.of_feature is self:
            check_judged(simulation.world, simulation.host.poison.get(Challenge.queue, []))


RULES = ChallengeRules()
