"""The importance of each parameter of a sweep, computed by Optuna. Pure."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from shared.jobs.search import Sweep
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.sampling import distributions, fits, params_of

LEAST = 8  # trials; with fewer, no importance is reported


def importance(sweep: Sweep, trials: Sequence[Trial]) -> dict[str, float]:
    """The share of each parameter, by PED-ANOVA, which compares good trials with all trials; {} with too few trials."""
    import optuna

    ended = (trial for trial in trials if trial.state is not TrialState.RUNNING and fits(sweep, trial))
    best = [(trial, trial.best(sweep.maximize)) for trial in ended]
    measured = [(trial, value) for trial, value in best if value is not None]
    if len(measured) < LEAST or len({value for _, value in measured}) == 1:
        return {}
    space = distributions(sweep)
    direction = optuna.study.StudyDirection.MAXIMIZE if sweep.maximize else optuna.study.StudyDirection.MINIMIZE
    study = optuna.create_study(direction=direction)
    study.add_trials(
        [
            optuna.create_trial(params=params_of(sweep, trial), distributions=space, value=value)
            for trial, value in measured
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning that PED-ANOVA is experimental
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return {
            name: round(part, 4)
            for name, part in optuna.importance.get_param_importances(study, evaluator=evaluator).items()
        }
