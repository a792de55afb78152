"""Draws the next trial of a sweep with Optuna's samplers. The study is in memory: after a restart, the control
plane repeats the earlier draws and reports the ended trials."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emulators.azureml.bodies.sweep_body import Parameter, SweepSpec

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

Drawn = dict[str, float]


class Sampling:
    """Draws the parameters of one sweep's trials. The seed is the sweep's own or derived from the sweep's name, so
    a restart repeats the draws.

    `drawn` are the trials that were drawn before a restart.
    """

    def __init__(self, name: str, spec: SweepSpec, drawn: Sequence[Drawn] = ()) -> None:
        import optuna  # takes half a second, and only sweeps need it
        from optuna.study import StudyDirection

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        seed = spec.seed if spec.seed is not None else zlib.crc32(name.encode())
        if spec.sampling == "bayesian":  # it gets the earlier draws, so it needs other random numbers
            seed += len(drawn)
        self._spec = spec
        self._space = {key: _distribution(parameter) for key, parameter in spec.space.items()}
        direction = StudyDirection.MAXIMIZE if spec.maximize else StudyDirection.MINIMIZE
        self._study = optuna.create_study(direction=direction, sampler=_sampler(spec, seed))
        self._trials: list[Any] = []
        for before in drawn:
            if spec.sampling == "bayesian":  # its draws depend on which trials had ended
                self._study.enqueue_trial(before)
            self.draw()

    @property
    def most(self) -> int:
        """Return the number of trials to draw."""
        if self._spec.sampling != "grid":
            return self._spec.most_trials
        size = 1
        for parameter in self._spec.space.values():
            size *= len(parameter.values)
        return min(size, self._spec.most_trials)

    def draw(self) -> Drawn:
        """Return the next trial."""
        trial = self._study.ask(self._space)
        self._trials.append(trial)
        return dict(trial.params)

    def report(self, number: int, best: float | None) -> None:
        """Report the best metric of a trial, or None. Only bayesian sampling learns from the metric."""
        from optuna.trial import TrialState

        if self._spec.sampling == "bayesian":
            self._study.tell(self._trials[number], best, state=TrialState.FAIL if best is None else None)


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.kind == "choice":
        return CategoricalDistribution(list(range(len(parameter.values))))
    if parameter.kind == "randint":
        return IntDistribution(0, int(parameter.numbers[0]) - 1)
    if "normal" in parameter.kind:
        return FloatDistribution(0.0, 1.0)
    return FloatDistribution(parameter.numbers[0], parameter.numbers[1])


def _sampler(spec: SweepSpec, seed: int) -> BaseSampler:
    from optuna import samplers
    from optuna.exceptions import ExperimentalWarning

    warnings.simplefilter("ignore", ExperimentalWarning)  # of its Sobol sequence; the version is pinned
    match spec.sampling:
        case "grid":
            return samplers.GridSampler({key: range(len(p.values)) for key, p in spec.space.items()}, seed)
        case "sobol":
            return samplers.QMCSampler(qmc_type="sobol", scramble=True, seed=seed)
        case "bayesian":
            return samplers.TPESampler(seed=seed, constant_liar=True)
        case _:
            return samplers.RandomSampler(seed)
