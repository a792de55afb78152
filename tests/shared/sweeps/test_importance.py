"""The importance of parameters equals Optuna's PED-ANOVA, an independent implementation."""

from __future__ import annotations

import math
import random
import warnings

import optuna
import pytest

from shared.jobs.search import CHOICE, Parameter, Sweep
from shared.sweeps.importance import LEAST, importance
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.sampling import _at_random
from tests.shared.sweeps import lab

SPACE = {
    "lr": Parameter("loguniform", (), math.log(1e-4), math.log(0.1)),
    "drop": Parameter("uniform", (), 0.0, 1.0),
    "size": Parameter(CHOICE, (16, 32, 64)),
    "layers": Parameter("quniform", (), 1.0, 6.0, 1.0),
    "width": Parameter("qloguniform", (), math.log(8), math.log(512), 1.0),
    "kind": Parameter("randint", (), 4.0),
    "init": Parameter("normal", (), 0.0, 2.0),
}


def _value(drawn: dict[str, float], dice: random.Random) -> float:
    return -abs(math.log10(drawn["lr"]) + 2) - 0.3 * drawn["drop"] + 0.1 * drawn["layers"] + dice.gauss(0, 0.05)


@pytest.mark.parametrize("count", [LEAST, 30, 120])
@pytest.mark.parametrize("maximize", [True, False])
def test_the_shares_are_optunas(count: int, maximize: bool) -> None:
    """For every kind of parameter and either direction, each share is within a thousandth of Optuna's."""
    sweep, dice = Sweep(SPACE, "accuracy", maximize=maximize), random.Random(count)
    trials = []
    for number in range(count):
        drawn = _at_random(sweep, number)
        value = _value(drawn, dice) * (1 if maximize else -1)  # type: ignore[arg-type]
        trials.append(Trial(number, drawn, TrialState.COMPLETED, [value]))
    study = optuna.create_study(direction="maximize" if maximize else "minimize")
    space = lab.space(sweep)
    study.add_trials([optuna.create_trial(params=dict(t.drawn), distributions=space, value=t.told[0]) for t in trials])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        expected = optuna.importance.get_param_importances(study, evaluator=evaluator)
    assert importance(sweep, trials) == pytest.approx(expected, abs=1e-3)
    assert next(iter(importance(sweep, trials))) == next(iter(expected))


def test_few_or_equal_trials_say_nothing() -> None:
    """Fewer than LEAST trials, or trials with one value, have no importance."""
    sweep = Sweep(SPACE, "accuracy")
    some = [Trial(n, _at_random(sweep, n), TrialState.COMPLETED, [n / 10]) for n in range(LEAST)]
    assert importance(sweep, some[1:]) == {}
    assert importance(sweep, [Trial(t.number, t.drawn, t.state, [0.5]) for t in some]) == {}
